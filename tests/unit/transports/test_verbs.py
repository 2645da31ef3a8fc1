"""The parts of transport rdma that need no device: the port of an interface, credits, statuses, the allocator."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from scaleproof.core.transport_errors import PeerLost
from scaleproof.fabric.verbs import choose, listed, netdev, ports
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.spec.errors import SpecError
from scaleproof.transports._allocator import PAGE, Allocator, RegionExhausted
from scaleproof.transports.verbs import device_errors
from scaleproof.transports.verbs.credits import MAX_CREDITS, NUMBERS, RESERVE, Credits, Kind, pack, unpack
from scaleproof.transports.verbs.device_errors import STATUSES, failure

LINK_LOCAL, MAPPED = "fe80:0000:0000:0000:0204:0506:0708:090a", "0000:0000:0000:0000:0000:ffff:0a4d:0001"
NOTHING = "0000:0000:0000:0000:0000:0000:0000:0000"


def port(
    root: Path,
    device: str,
    number: int,
    layer: str,
    state: str = "4: ACTIVE",
    lid: str = "0x0",
    gids: list[tuple[str, str, str]] | None = None,
) -> None:
    """A port as in sysfs; `gids`: value, type, interface."""
    folder = root / "infiniband" / device / "ports" / str(number)
    for name in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (folder / name).mkdir(parents=True)
    for name, text in (("state", state), ("link_layer", layer), ("lid", lid)):
        (folder / name).write_text(text + "\n")
    for index, (value, kind, interface) in enumerate(gids or []):
        (folder / "gids" / str(index)).write_text(value + "\n")
        if kind:
            (folder / "gid_attrs/types" / str(index)).write_text(kind + "\n")
            (folder / "gid_attrs/ndevs" / str(index)).write_text(interface + "\n")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A RoCE card with two ports, the second one down, and an InfiniBand card with IPoIB on it."""
    table = [
        (LINK_LOCAL, "IB/RoCE v1", "eth2"),
        (LINK_LOCAL, "RoCE v2", "eth2"),
        (MAPPED, "IB/RoCE v1", "eth2"),
        (MAPPED, "RoCE v2", "eth2"),
        (NOTHING, "", ""),
    ]
    port(tmp_path, "mlx5_0", 1, "Ethernet", gids=table)
    port(tmp_path, "mlx5_0", 2, "Ethernet", "1: DOWN", gids=[(LINK_LOCAL, "RoCE v2", "eth3")])
    port(tmp_path, "mlx5_1", 1, "InfiniBand", lid="0x1f", gids=[("fe80:0000:0000:0000:0002:c903:0000:0001", "IB", "")])
    (tmp_path / "net/ib0/device/infiniband/mlx5_1").mkdir(parents=True)
    (tmp_path / "net/ib0/dev_port").write_text("0\n")
    return tmp_path


@pytest.mark.parametrize("interface", ["eth2", "mlx5_0", "mlx5_0:1", "mlx5_0:1:3"])
def test_an_ethernet_port_is_found_by_interface_or_device_with_its_routable_ipv4_gid(
    cluster: Path, interface: str
) -> None:
    address = choose(interface, "10.77.0.1", cluster)
    assert (address.port.name, address.gid and address.gid.index, address.gid and address.gid.ipv4) == (
        "mlx5_0:1",
        3,
        "10.77.0.1",
    )


def test_a_gid_that_is_named_is_taken_also_when_it_is_not_the_best(cluster: Path) -> None:
    address = choose("mlx5_0:1:1", "10.77.0.1", cluster)
    assert address.gid is not None and (address.gid.index, address.gid.ipv4) == (1, "")


def test_an_infiniband_port_needs_no_interface_and_is_addressed_by_lid(cluster: Path) -> None:
    for interface in ("mlx5_1", "ib0"):
        address = choose(interface, "", cluster)
        assert (address.port.name, address.port.lid, address.port.link_layer, address.port.netdevs) == (
            "mlx5_1:1",
            31,
            "InfiniBand",
            ("ib0",),
        )


@pytest.mark.parametrize(
    ("interface", "message"),
    [
        (
            "eth9",
            r"no verbs device on interface 'eth9'; ports here: mlx5_0:1 \(Ethernet, ACTIVE, eth2\), mlx5_0:2 "
            r"\(Ethernet, DOWN, eth3\), mlx5_1:1",
        ),
        ("mlx5_0:7", "'mlx5_0:7'; ports here"),
        ("mlx5_0:2", "port mlx5_0:2 on interface 'mlx5_0:2' is DOWN, not ACTIVE"),
        ("mlx5_0:1:8", "port mlx5_0:1 has no GID with index 8; its GIDs: 0 fe80"),
    ],
)
def test_a_missing_port_is_an_error_that_lists_the_existing_ones(cluster: Path, interface: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        choose(interface, "", cluster)


def test_a_port_with_old_gids_only_is_refused(tmp_path: Path) -> None:
    port(tmp_path, "mlx4_0", 1, "Ethernet", gids=[(MAPPED, "IB/RoCE v1", "eth0")])
    with pytest.raises(SpecError, match="has no RoCE v2 GID for interface 'eth0'; its GIDs: 0 "):
        choose("eth0", "10.77.0.1", tmp_path)


def test_without_devices_there_are_no_ports(tmp_path: Path) -> None:
    assert ports(tmp_path) == []
    assert listed([]) == "this machine has no verbs device"


def test_a_devices_interface_is_found_for_addresses(cluster: Path) -> None:
    assert [netdev(name, cluster) for name in ("mlx5_0", "mlx5_1:1", "eth2", "lo")] == ["eth2", "ib0", "eth2", "lo"]


def test_every_status_has_a_failure_with_advice_and_names_the_peer() -> None:
    for status, (name, _, meaning) in STATUSES.items():
        error = failure(status, 3, 0x81)
        assert name in str(error) and meaning in str(error) and "rank 3" in str(error) and "0x81" in str(error)
        assert error.code in ADVICE
    lost = failure(12, 3)
    assert isinstance(lost, PeerLost) and lost.peer == 3
    assert [failure(status, 0).code for status in (1, 4, 5, 10, 13, 99)] == [
        "message_too_large",
        "transport_error",
        "peer_lost",
        "remote_access",
        "queue_overflow",
        "transport_error",
    ]
    assert STATUSES[device_errors.FLUSHED][0] == "WR_FLUSH_ERR"


def test_immediate_data_carry_kind_credits_and_number() -> None:
    for kind in Kind:
        for credits in (0, 1, MAX_CREDITS):
            for number in (0, 17, NUMBERS - 1, NUMBERS + 5):
                word = pack(kind, credits, number)
                assert 0 <= word < 1 << 32 and unpack(word) == (kind, credits, number % NUMBERS)


def test_credits_never_promise_more_than_there_are_receive_requests() -> None:
    """Two sides that send at random: unread messages never exceed the receive requests, and neither side starves."""
    generator = np.random.default_rng(5)
    depth = 16
    sides = [Credits(depth), Credits(depth)]
    wires: list[list[tuple[bool, int]]] = [[], []]
    sent = [0, 0]
    for _ in range(20_000):
        side = int(generator.integers(2))
        own, out, coming = sides[side], wires[side], wires[1 - side]
        if generator.random() < 0.5 and coming:
            paid, credits = coming.pop(0)
            own.add(credits)
            if paid:
                own.reposted()
        elif own.use():
            out.append((True, own.return_owed()))
            sent[side] += 1
        if own.due:
            out.append((False, own.return_owed()))
        assert max(map(len, wires)) <= depth
    assert min(sent) > 4000


def test_reserved_receive_requests_take_no_credit() -> None:
    own = Credits(8)
    assert [own.use() for _ in range(8)].count(True) == 8 - RESERVE
    own.add(1)
    assert own.use() and not own.use()


def test_the_allocator_joins_what_is_freed_and_names_what_is_exhausted() -> None:
    area = mmap.mmap(-1, 64 * PAGE)
    own = Allocator(area, "registered region")
    pieces = [own.allocate(16 * PAGE) for _ in range(4)]
    assert [own.offset(piece) for piece in pieces] == [0, 16 * PAGE, 32 * PAGE, 48 * PAGE]
    assert own.offset(pieces[1][100:]) == 16 * PAGE + 100 and own.offset(np.empty(8)) is None
    with pytest.raises(
        RegionExhausted,
        match="no 1 contiguous bytes are left in the registered region of 262144 bytes; the largest free piece has 0",
    ):
        own.allocate(1)
    view = pieces[1][5:10]
    del pieces[1:3]
    with pytest.raises(RegionExhausted, match=f"largest free piece has {16 * PAGE}"):
        own.allocate(17 * PAGE)  # a view still holds its array
    del view
    assert own.offset(own.allocate(32 * PAGE)) == 16 * PAGE
    assert RegionExhausted.code in ADVICE
