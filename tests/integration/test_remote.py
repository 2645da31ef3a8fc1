"""Tensors over a remote device on real processes: nothing torn, nothing overwritten, every copy and message counted, a
lost peer told."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.remote._one_sided_channel import OneSidedChannel
from scaleproof.remote.tensor_channel import (
    Edge,
    Mechanism,
    NotStatic,
    TensorChannel,
    TransferCounts,
    open_channel,
    shared_channel,
)
from scaleproof.spec import registry
from scaleproof.transports.contract import Array, Done, Handle, OneSided, Region, Transport
from scaleproof.transports.shm.shm import SharedMemory
from scaleproof.transports.ucx import ucx
from tests.integration.conformance import process_set
from tests.short_form import case_from, ring_case
from tests.waiting import wait_until

MECHANISMS: tuple[Mechanism, ...] = ("messages", "rpc", "copy", "zero_copy", "dynamic")
DEVICES = ("shm", "ucx", "ucx over tcp")
TRANSFERS = 100_000
LOSS_S = 5.0
TENSOR = Edge("tensor", 0, 1, (1000,))


def on(device: str, body: Callable[[RankContext, OneSided], None], timeout_s: float = 60.0) -> list[str]:
    """Run two ranks that are connected by a device."""
    transport = device.partition(" ")[0]
    if not registry.availability("transport", transport).available:
        pytest.skip(f"{transport} is not installed")
    case = case_from(
        {
            "program": "transfer",
            "suite": "test",
            "experiment": "remote",
            "arm": device,
            "transport": transport,
            "sizes": [8],
        }
    )

    def rank(context: RankContext) -> None:
        if device == "ucx over tcp":
            ucx.transports_on = lambda interface: "self,tcp"
        connected = registry.load("transport", transport).connect(context)
        try:
            body(context, connected)
        finally:
            connected.close()

    return run_ranks(case, rank, timeout_s)


def exchange(context: RankContext, key: str, value: Any) -> Any:
    """Both ranks tell each other something outside of the device."""
    return context.rendezvous.exchange(key, context.rank, 2, value)


def carry(
    channel: TensorChannel,
    edge: Edge,
    rank: int,
    numbers: range,
    shape: Callable[[int], tuple[int, ...]] = lambda number: TENSOR.shape,
) -> None:
    """Send or receive that many tensors; the receiver checks shape and every element."""
    for number in numbers:
        if rank == edge.source:
            array = channel.outgoing(edge, None if edge.static else shape(number))
            array[...] = number
            channel.send(edge, array).wait()
        else:
            array = channel.recv(edge).wait()
            assert array.shape == shape(number)
            assert (array == number).all(), f"tensor {number} is torn: {np.unique(array)}"
            del array
            channel.release(edge)


def shape_of(edge: Edge) -> Callable[[int], tuple[int, ...]]:
    return lambda number: edge.shape


class FlagFirst(SharedMemory):
    """The mistake that the flag's place must exclude: the value is there before the bytes."""

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        super().write_flagged(source[:0], target, offset + source.nbytes, value)
        time.sleep(0)
        self.write(source, target, offset)
        return Done()


@pytest.mark.parametrize("transport", [SharedMemory, FlagFirst])
def test_no_tensor_is_torn_and_a_broken_order_would_be_seen(transport: type[SharedMemory]) -> None:
    """1e5 tensors in both directions at once over shared memory, every element looked at."""

    def body(context: RankContext) -> None:
        connected = transport.connect(context)
        edges = [Edge("a", 0, 1, (67,), "int64"), Edge("b", 1, 0, (67,), "int64")]
        channel, number, rank = open_channel("zero_copy", connected, edges, context), 0, context.rank
        out, into = edges[rank], edges[1 - rank]
        array = channel.outgoing(out)
        for number in range(TRANSFERS // 2):
            array.fill(number)
            sending, arrival = channel.send(out, array), channel.recv(into)
            arrived = arrival.wait()
            assert arrived[0] == number and arrived[-1] == number and (arrived == number).all(), (
                f"tensor {number} is torn"
            )
            channel.release(into)
            sending.wait()
        connected.barrier()
        channel.close()
        connected.close()

    case = case_from(
        {
            "program": "transfer",
            "suite": "test",
            "experiment": "remote",
            "arm": "torn",
            "transport": "shm",
            "sizes": [8],
        }
    )
    errors = run_ranks(case, body, 120)
    if transport is SharedMemory:
        assert errors == ["", ""]
    else:
        assert any("is torn" in error for error in errors), errors


@pytest.mark.parametrize("mechanism", ["rpc", "copy", "zero_copy", "dynamic"])
@pytest.mark.parametrize("device", DEVICES)
def test_large_tensors_are_whole_when_their_flag_is_seen(device: str, mechanism: Mechanism) -> None:
    """Many puts, pages and segments long; every element looked at."""
    edges = [Edge("large", 0, 1, (300_007,)), Edge("small", 0, 1, (9,), "uint8")]

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel(mechanism, transport, edges, context)
        for number in range(1, 26):
            for edge in edges:
                carry(channel, edge, context.rank, range(number, number + 1), shape_of(edge))
        transport.barrier()
        channel.close()

    assert on(device, body) == ["", ""]


@pytest.mark.parametrize("mechanism", ["messages", "rpc", "dynamic"])
@pytest.mark.parametrize("device", DEVICES)
def test_shapes_that_vary_arrive_intact(device: str, mechanism: Mechanism) -> None:
    edge = Edge("varying", 0, 1, (300, 40), static=False)

    def shape(number: int) -> tuple[int, ...]:
        return tuple(int(size) for size in np.random.default_rng(number).integers(0, (301, 41)))

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel(mechanism, transport, [edge], context)
        carry(channel, edge, context.rank, range(150), shape)
        transport.barrier()
        channel.close()

    assert on(device, body) == ["", ""]


SENT = {"tensors": 20, "nbytes": 80_000}
COPIED = {"copies": 20, "copied_bytes": 80_000}
COSTS: dict[tuple[Mechanism, bool], tuple[dict[str, int], dict[str, int]]] = {
    ("messages", True): (SENT | {"messages": 20}, {}),
    ("messages", False): (SENT | {"messages": 40}, {}),
    ("copy", True): (SENT | COPIED | {"messages": 20, "writes": 20}, COPIED | {"releases": 20}),
    ("zero_copy", True): (SENT | {"messages": 20, "writes": 20}, {"releases": 20}),
    ("dynamic", False): (
        SENT | {"messages": 20, "writes": 20},
        {"messages": 20, "reads": 20, "round_trips": 20, "releases": 20},
    ),
    # A request each, a correction and a second request for the first; each has an acknowledgement.
    ("rpc", True): (SENT | COPIED | {"messages": 42, "writes": 42}, {"messages": 22, "writes": 22, "round_trips": 21}),
}
"""By mechanism and whether the edge is static: what 20 tensors of 4000 bytes cost the sender and the receiver."""


@pytest.mark.parametrize(("mechanism", "static"), list(COSTS))
@pytest.mark.parametrize("device", ["shm", "ucx"])
def test_costs_are_exactly_as_documented(device: str, mechanism: Mechanism, static: bool) -> None:
    edge = Edge("tensor", 0, 1, (1000,), static=static)

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel(mechanism, transport, [edge], context)
        carry(channel, edge, context.rank, range(20))
        transport.barrier()
        for _ in range(3):
            channel.advance()
        expected = asdict(TransferCounts(**COSTS[mechanism, static][context.rank]))
        assert asdict(channel.counts.total) == expected
        assert asdict(channel.counts.of(edge)) == expected

    assert on(device, body) == ["", ""]


def test_a_tensor_born_elsewhere_costs_a_copy() -> None:
    """What allocation-site tracing saves."""

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel("zero_copy", transport, [TENSOR], context)
        if context.rank == 0:
            channel.send(TENSOR, np.ones(TENSOR.shape, np.float32)).wait()
        else:
            assert (channel.recv(TENSOR).wait() == 1).all()
        assert (channel.counts.total.copies, channel.counts.total.copied_bytes) == (
            (1, 4000) if context.rank == 0 else (0, 0)
        )
        transport.barrier()

    assert on("shm", body) == ["", ""]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("device", DEVICES)
def test_what_the_receiver_holds_is_not_overwritten(device: str, mechanism: Mechanism) -> None:
    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel(mechanism, transport, [TENSOR], context)
        if context.rank == 0:
            for number in (1, 2, 3):
                array = channel.outgoing(TENSOR)
                array[...] = number
                channel.send(TENSOR, array).wait()
        else:
            held = channel.recv(TENSOR).wait()
            with pytest.raises(TransportError, match="release|holds"):
                channel.recv(TENSOR)
            until = time.monotonic() + 0.1
            while time.monotonic() < until:
                channel.advance()
                assert (held == 1).all()
            channel.release(TENSOR)
            for number in (2, 3):
                assert (channel.recv(TENSOR).wait() == number).all()
                channel.release(TENSOR)
        transport.barrier()
        channel.close()

    assert on(device, body) == ["", ""]


def test_ucx_over_tcp_conforms_too(tmp_path: Path) -> None:
    """The conformance suite runs ucx on `lo`, which is its shared memory."""

    def body(context: RankContext) -> None:
        ucx.transports_on = lambda interface: "self,tcp"
        process_set.check_everything(context, tmp_path)

    assert run_ranks(ring_case("ucx", 3), body, 120) == ["", "", ""]
    results = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(results) > 1000 and not [result for result in results if not result["passed"]]


def test_one_tensor_goes_to_several_ranks_from_where_it_was_born() -> None:
    case = case_from(
        {
            "program": "transfer",
            "suite": "test",
            "experiment": "remote",
            "arm": "fan",
            "transport": "shm",
            "ranks": 3,
            "sizes": [8],
        }
    )
    edges = [Edge("shared", 0, rank, (500,)) for rank in (1, 2)]

    def body(context: RankContext) -> None:
        transport = SharedMemory.connect(context)
        channel = open_channel("zero_copy", transport, edges, context)
        for number in range(50):
            if context.rank == 0:
                channel.outgoing(edges[0])[...] = number
                for sending in [channel.send(edge, channel.outgoing(edges[0])) for edge in edges]:
                    sending.wait()
            else:
                assert (channel.recv(edges[context.rank - 1]).wait() == number).all()
                channel.release(edges[context.rank - 1])
        assert channel.counts.total.copies == 0
        transport.barrier()
        transport.close()

    assert run_ranks(case, body) == ["", "", ""]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_peer_that_dies_amid_transfers_is_told(device: str, mechanism: Mechanism, lost: int) -> None:
    """The sender or the receiver is killed; who is left gets PeerLost soon."""

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel(mechanism, transport, [TENSOR], context)
        carry(channel, TENSOR, context.rank, range(5))
        exchange(context, "five", True)
        if context.rank == lost:
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(PeerLost) as told:
            while time.monotonic() - start < 2 * LOSS_S:
                carry(channel, TENSOR, context.rank, range(5, 6))
        assert told.value.peer == lost and time.monotonic() - start < LOSS_S

    outcomes = on(device, body, 30)
    assert outcomes[1 - lost] == ""
    assert outcomes[lost] == "ended by SIGKILL"


LARGE = Edge("large", 0, 1, (1 << 26,))
"""256 MiB in one write: long enough that the other side can see its beginning before its end."""
ATTEMPTS = 5


def segments() -> set[str]:
    """Named shared memory on this machine, but that of launches."""
    return {name for name in os.listdir("/dev/shm") if "scaleproof" not in name}


def looked_at(memory: Array) -> int:
    """How many of seven bytes within a tensor of ones are there; a C library may copy from the end, and both ends
    last."""
    return int(memory[:: memory.size // 8][1:8].sum())


def arrived(transport: OneSided, memory: Array) -> int:
    """The same, after the progress that a put over tcp needs."""
    if isinstance(transport, ucx.Ucx):
        transport.calls.advance()
    return looked_at(memory)


@pytest.mark.parametrize("mechanism", ["copy", "zero_copy"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_peer_killed_within_one_large_write_is_told(
    device: str, mechanism: Mechanism, lost: int, tmp_path: Path
) -> None:
    """The receiver sees some of the tensor and not all, and kills the writer or itself. Half a tensor is never taken
    for a whole one."""

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel(mechanism, transport, [LARGE], context)
        assert isinstance(channel, OneSidedChannel)
        pids = exchange(context, "pid", os.getpid())
        if context.rank == 0:
            array = channel.outgoing(LARGE)
            array.view(np.uint8).fill(1)
            exchange(context, "born", True)
            start = time.monotonic()
            with pytest.raises(PeerLost) as told:
                channel.send(LARGE, array).wait()
                transport.wait_for(lambda: channel.freed(channel.out[LARGE]) > 0, 1)
        else:
            memory = channel.memory[channel.plan.offset(1, ("arrival", LARGE)) :][: LARGE.nbytes]
            exchange(context, "born", True)
            victim = os.pidfd_open(pids[lost])
            while not arrived(transport, memory):
                pass
            start, within = time.monotonic(), tmp_path / "within"
            within.write_text(str(int(arrived(transport, memory) < 7)))
            signal.pidfd_send_signal(victim, signal.SIGKILL)
            assert select.select([victim], [], [], LOSS_S)[0]
            if looked_at(memory) == 7:
                within.write_text("0")
                return
            with pytest.raises(PeerLost) as told:
                channel.recv(LARGE).wait()
        assert told.value.peer == lost and told.value.code == "peer_lost" and time.monotonic() - start < 2 * LOSS_S

    before = segments()
    for _ in range(ATTEMPTS):
        outcomes = on(device, body, 30)
        if (tmp_path / "within").read_text() == "1":
            break
    else:
        raise AssertionError("the write was over before it was seen")
    assert outcomes[1 - lost] == "", outcomes[1 - lost]
    assert outcomes[lost] == "ended by SIGKILL"
    wait_until(lambda: not segments() - before, "shared memory of the lost rank is removed")


@pytest.mark.parametrize("mechanism", ["rpc", "copy", "zero_copy", "dynamic"])
def test_a_closed_link_gives_its_memory_back_at_once(mechanism: Mechanism) -> None:
    """And not when the garbage collector comes by, in whichever thread: a device's library may be at work in another
    one."""

    def body(context: RankContext, transport: OneSided) -> None:
        gc.collect()
        gc.disable()
        with shared_channel(mechanism, transport, [TENSOR], context) as channel:
            carry(channel, TENSOR, context.rank, range(3))
            assert isinstance(channel, OneSidedChannel)
        assert channel.region.local is None
        reference = weakref.ref(channel)
        del channel
        assert reference() is None
        transport.barrier()

    assert on("ucx", body) == ["", ""]


def test_ucx_refuses_to_look_at_memory_that_was_given_back() -> None:
    """It is unmapped by then."""

    def body(context: RankContext, transport: OneSided) -> None:
        early, late = transport.register(4096), transport.register(4096)
        transport.barrier()
        transport.deregister(early)
        with pytest.raises(TransportError, match="deregistered"):
            transport.poll_word(early, 0)
        transport.close()
        with pytest.raises(TransportError, match="deregistered"):
            transport.poll_word(late, 0)

    assert on("ucx", body) == ["", ""]


def test_memory_of_ucx_outlives_its_transport() -> None:
    """What still holds an array of a region may read it after `close`, and may drop it then."""

    def body(context: RankContext, transport: OneSided) -> None:
        arrays = [transport.register(4096).local for _ in range(2)][context.rank :]
        transport.barrier()
        transport.close()
        while arrays:
            memory = arrays.pop()
            assert memory is not None and not memory.any()
            del memory

    assert on("ucx", body) == ["", ""]


def test_a_put_outlives_the_region_it_began_with() -> None:
    """Over tcp a put needs the target's progress; its key is kept until then, and the library may use its bytes."""

    def body(context: RankContext, transport: OneSided) -> None:
        assert isinstance(transport, ucx.Ucx)
        region = transport.register(8 << 20)
        remote = transport.remote(region, 1 - context.rank)
        memory = region.local
        transport.barrier()
        if context.rank == 0:
            write = transport.write(np.full(8 << 20, 7, np.uint8), remote)
            assert not write.test()
            transport.deregister(region)
            assert transport._released_keys
            exchange(context, "given back", True)
            write.wait()
        else:
            exchange(context, "given back", True)
            assert memory is not None
            transport.wait_for(lambda: transport.poll_word(region, 0) > 0 and memory[-1] == 7, 0)
            assert (memory == 7).all()
        transport.barrier()

    assert on("ucx over tcp", body) == ["", ""]


class Unconnected:
    """Enough of a transport to be asked for a channel."""

    def __init__(self, one_sided: bool) -> None:
        self.capabilities = SharedMemory.capabilities if one_sided else registry.load("transport", "tcp").capabilities
        self.rank, self.world_size = 0, 2


@pytest.mark.parametrize("mechanism", ["copy", "zero_copy"])
def test_static_placement_of_a_varying_shape_is_refused_in_one_line(mechanism: Mechanism) -> None:
    with pytest.raises(NotStatic) as refused:
        open_channel(
            mechanism,
            cast(Transport, Unconnected(True)),
            [Edge("state", 0, 1, (32, 10), static=False)],
            cast(RankContext, None),
        )
    assert str(refused.value) == (
        f"mechanism {mechanism!r} places tensors in advance and cannot carry edge 'state', whose shape "
        "varies; use 'dynamic'"
    )


@pytest.mark.parametrize("mechanism", ["rpc", "copy", "zero_copy", "dynamic"])
def test_a_transport_without_regions_is_refused(mechanism: Mechanism) -> None:
    with pytest.raises(TransportError, match="needs one-sided writes"):
        open_channel(mechanism, cast(Transport, Unconnected(False)), [TENSOR], cast(RankContext, None))


def test_misuse_is_one_line() -> None:
    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel("zero_copy", transport, [TENSOR, Edge("back", 1, 0, (3,))], context)
        if context.rank == 0:
            with pytest.raises(NotStatic, match=r"always shape \(1000,\) of float32; this tensor has \(999,\)"):
                channel.send(TENSOR, np.zeros(999, np.float32))
            with pytest.raises(NotStatic, match="float64"):
                channel.send(TENSOR, np.zeros(1000))
            with pytest.raises(TransportError, match="no such end"):
                channel.recv(TENSOR)
            with pytest.raises(TransportError, match="no tensor to release"):
                channel.release(channel.edges[1])
        transport.barrier()
        with pytest.raises(TransportError, match="different edges"):
            open_channel("zero_copy", transport, [Edge("tensor", 0, 1, (5 + context.rank,))], context)

    assert on("shm", body) == ["", ""]


def test_a_region_beyond_the_machine_has_its_code() -> None:
    def body(context: RankContext, transport: OneSided) -> None:
        with pytest.raises(TransportError, match="of memory") as refused:
            transport.register(1 << 46)
        assert refused.value.code == "region_exhausted"
        transport.barrier()

    assert on("ucx", body) == ["", ""]


def test_an_interface_that_does_not_exist_has_its_code() -> None:
    case = {
        "program": "transfer",
        "suite": "test",
        "experiment": "remote",
        "arm": "ucx",
        "transport": "ucx",
        "sizes": [8],
        "interface": "nope0",
    }

    def body(context: RankContext) -> None:
        with pytest.raises(TransportError, match="no interface 'nope0'; there are .*lo") as refused:
            ucx.Ucx.connect(context)
        assert refused.value.code == "device_missing"

    assert run_ranks(case_from(case), body) == ["", ""]


def test_a_tensor_beyond_the_region_has_its_code() -> None:
    """Receivers that keep what they got until nothing is left."""
    edge = Edge("large", 0, 1, (1 << 20,), static=False)

    def body(context: RankContext, transport: OneSided) -> None:
        channel = open_channel("dynamic", transport, [edge], context)
        arrays = []
        if context.rank == 0:
            for _ in range(3):
                channel.send(edge, channel.outgoing(edge)).wait()
            return
        with pytest.raises(TransportError) as exhausted:
            for _ in range(3):
                arrays.append(channel.recv(edge).wait())
                channel.release(edge)
        assert exhausted.value.code == "region_exhausted"

    assert on("shm", body, 15)[1] == ""
