"""Checks of faults: each ends in a named failure within seconds, and nothing is left behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._allocator import RegionExhausted
from scaleproof.transports.verbs.device_errors import (
    DeviceMissing,
    MemlockTooSmall,
    MessageTooLarge,
    QueueOverflow,
    RemoteAccess,
)
from scaleproof.transports.verbs.rdma import Rdma
from tests.integration.conformance import process_set
from tests.integration.rdma.checks import LARGE_REGION, REGION_MIB, ThisNode, case_of, check, connect
from tests.waiting import wait_until

LOSS_S = 12.0
"""What the device's retries take, and what busy cores add."""
WITHOUT_IPC_LOCK = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")
"""Root may lock as much as it likes."""


@check
def a_wrong_key_is_refused(this_node: ThisNode) -> None:
    def body(context: RankContext) -> None:
        transport = connect(context)
        region = transport.register(4096)
        connection = transport.mesh.peers[1 - context.rank].connection
        if context.rank == 0:
            connection.key ^= 0x5555
            with pytest.raises(RemoteAccess, match="wrong key"):
                transport.write(np.ones(64, np.uint8), transport.remote(region, 1)).wait()
            assert RemoteAccess.code == "remote_access"
        else:
            with pytest.raises(PeerLost):
                transport.recv(np.empty(8, np.uint8), 0).wait()
            assert region.local is not None and not region.local.any()
        transport.close()

    this_node.succeed(body, 2, 20)


@check
def bytes_beyond_a_region_are_refused(this_node: ThisNode) -> None:
    """By the transport, which knows its regions; and by the peer's device, which knows where registered memory ends."""

    def body(context: RankContext) -> None:
        transport = connect(context)
        remote = transport.remote(transport.register(4096), 1 - context.rank)
        with pytest.raises(TransportError, match="outside of a region of 4096 bytes"):
            transport.write(np.ones(64, np.uint8), remote, 4090)
        transport.barrier()
        if context.rank == 0:
            remote.offset = transport.device.region.nbytes
            with pytest.raises(RemoteAccess):
                transport.write(np.ones(64, np.uint8), remote).wait()
        else:
            with pytest.raises(PeerLost):
                transport.recv(np.empty(8, np.uint8), 0).wait()
        transport.close()

    this_node.succeed(body, 2, 20)


@check
def a_queue_that_overflows_is_named(this_node: ThisNode) -> None:
    """More requests than it holds: refused by our own count, and by the device when nobody counts."""

    def body(context: RankContext) -> None:
        transport = connect(context)
        connection = transport.mesh.peers[1 - context.rank].connection
        transport.barrier()
        if context.rank == 0:
            queue_pair, source = connection.bulk[0], transport.allocate(1 << 20)
            post = partial(
                queue_pair.post,
                connection.e.IBV_WR_RDMA_WRITE,
                [(source.ctypes.data, source.size)],
                (connection.base, connection.key),
            )
            connection.base += transport.device.region.nbytes - source.size
            for _ in range(queue_pair.room):
                post()
            with pytest.raises(QueueOverflow, match="all of them are under way"):
                post()
            with pytest.raises(QueueOverflow, match="takes no more work requests"):
                for _ in range(16 * queue_pair.depth):
                    queue_pair.depth += 1
                    post()
            queue_pair.depth = queue_pair.posted - queue_pair.retired  # what the device really holds
        transport.close()

    this_node.succeed(body, 2, 60)


@check
def a_message_too_large_for_one_request_is_named(this_node: ThisNode) -> None:
    """The transport splits messages; one work request cannot hold more than the port moves at once."""

    def body(context: RankContext) -> None:
        transport = connect(context)
        most = transport.device.max_message
        connection = transport.mesh.peers[1 - context.rank].connection
        with pytest.raises(MessageTooLarge, match=f"longer than the {most} bytes"):
            connection.bulk[0].post(
                connection.e.IBV_WR_RDMA_WRITE,
                [(transport.device.region.address, most + 1)],
                (connection.base, connection.key),
            )
        buffer = transport.allocate(most + 4096)
        buffer[:] = context.rank
        if context.rank == 0:
            transport.send(buffer, 1).wait()
        else:
            transport.recv(buffer, 0).wait()
            assert not buffer.any()
        transport.barrier()
        transport.close()

    this_node.succeed(body, 2, 30, **LARGE_REGION)


@check
def a_large_message_for_a_small_receive_is_named(this_node: ThisNode) -> None:
    """A large message waits for a place that a small receive never gives; whichever came first."""

    def body(context: RankContext, receive_first: bool) -> None:
        transport = connect(context)
        if context.rank == 0:
            sending = transport.send(transport.allocate(1 << 20), 1)
            until = time.monotonic() + LOSS_S
            while not context.rendezvous.folder.joinpath("said.1").exists() and time.monotonic() < until:
                assert not sending.test()
            transport.close()
            context.rendezvous.publish("closed.0", True)
        else:
            time.sleep(0 if receive_first else 1.5)
            start = time.monotonic()
            with pytest.raises(
                TransportError, match="sent message 0 of more than 16384 bytes where message 0 of 8 bytes was expected"
            ) as named:
                transport.recv(np.empty(8, np.uint8), 0).wait()
            assert named.value.code == "transport_error" and time.monotonic() - start < 3
            context.rendezvous.publish("said.1", True)
            context.rendezvous.get("closed.0")
            transport.close()

    for receive_first in (True, False):
        folder = this_node.shared / str(receive_first)
        folder.mkdir(exist_ok=True)
        replace(this_node, shared=folder).succeed(partial(body, receive_first=receive_first), 2, 20)


@check
def an_exhausted_region_is_named(this_node: ThisNode) -> None:
    mib = LARGE_REGION[REGION_MIB]

    def body(context: RankContext) -> None:
        transport = connect(context)
        with pytest.raises(RegionExhausted, match=f"registered region of {mib << 20} bytes"):
            transport.allocate((mib + 1) << 20)
        most = [transport.allocate(1 << 20) for _ in range(mib * 5 // 8)]
        with pytest.raises(RegionExhausted):
            most += [transport.allocate(1 << 20) for _ in range(mib * 5 // 8)]
        most.clear()
        transport.allocate((mib * 5 // 8) << 20)
        transport.barrier()
        transport.close()

    this_node.succeed(body, 2, 20, **LARGE_REGION)


@check
def a_small_memlock_is_named(this_node: ThisNode) -> None:
    """In a process that may not lock memory without limit."""
    command = [
        *WITHOUT_IPC_LOCK,
        sys.executable,
        "-c",
        "from tests.integration.rdma import faults; faults.locked_memory()",
    ]
    process = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert process.returncode == 0, process.stderr


def locked_memory() -> None:
    """Register 64 MiB with 1 MiB allowed."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
    with pytest.raises(MemlockTooSmall, match=r"RLIMIT_MEMLOCK\) is 1048576 bytes"):
        _alone(**LARGE_REGION)


def _alone(**fields: Any) -> None:
    """A launch of one rank, in this very process."""
    import tempfile

    from scaleproof.core.board import Board
    from scaleproof.core.recorder import Recorder
    from scaleproof.core.rendezvous import Rendezvous

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case, board = case_of(1, **fields), Board(folder / "board", 1)
        Rdma.connect(
            RankContext(
                case=case,
                rank=0,
                world_size=1,
                launch_id="",
                token="",
                seed=0,
                folder=folder,
                address="",
                rendezvous=Rendezvous(folder),
                recorder=Recorder(folder / "events"),
                board=board,
            )
        ).close()


@check
def what_does_not_exist_is_named_with_what_does(this_node: ThisNode) -> None:
    here_is = r"ports here: rxe0:1 \(Ethernet, ACTIVE, eth0\)"
    for interface, message in (
        ("lo", f"no verbs device on interface 'lo'; {here_is}"),
        ("mlx5_0", f"no verbs device on interface 'mlx5_0'; {here_is}"),
        ("rxe0:2", f"'rxe0:2'; {here_is}"),
        ("rxe0:1:900", "no GID with index 900; its GIDs: 0 fe80"),
    ):
        with pytest.raises(DeviceMissing, match=message):
            _alone(interface=interface)
    _alone(interface="rxe0")
    _alone(interface="rxe0:1:1")
    assert not _rxe_left()


@check
def nothing_is_left_on_the_device(this_node: ThisNode) -> None:
    """After all of the above, also after ranks that were killed: no queue pair, no region, no completion queue."""
    wait_until(lambda: not _rxe_left(), "no object is left on the device")


def _rxe_left() -> dict[str, int]:
    """Objects of processes that still exist on the device, as the kernel counts them."""
    process = subprocess.run(
        ["rdma", "-j", "resource", "show"], capture_output=True, text=True, timeout=10, check=True
    ).stdout
    resources = json.loads(process)[0]
    return {
        name: count
        for name, count in resources.items()
        if name in ("mr", "pd", "cq") and count > {"pd": 1, "cq": 1, "mr": 0}[name]
    }


@check
def a_peer_that_dies_is_lost_within_seconds(this_node: ThisNode) -> None:
    _lost(this_node, process_set.a_peer_dies)


@check
def a_peer_that_leaves_is_lost_within_seconds(this_node: ThisNode) -> None:
    _lost(this_node, process_set.a_peer_leaves)


def _lost(this_node: ThisNode, body: Callable[..., None]) -> None:
    this_node.run(partial(body, results=this_node.shared), 3, 40)
    for path in this_node.shared.glob("*.loss"):
        outcome, seconds = json.loads(path.read_text())
        assert outcome == "PeerLost" and seconds < LOSS_S, f"{path.stem} saw {outcome} after {seconds:.1f} s"
    assert list(this_node.shared.glob("*.loss"))


@check
def a_peer_gone_in_mid_write_is_lost_within_seconds(this_node: ThisNode) -> None:
    """Rank 1 is killed while rank 0 writes into its region without its help."""

    def body(context: RankContext) -> None:
        transport = connect(context)
        region = transport.register(16 << 20)
        if context.rank == 1:
            transport.set_flag(transport.remote(region, 0), 1)
            transport.wait_for(lambda: transport.poll_word(region, 0) > 0, 0)
            os.kill(os.getpid(), signal.SIGKILL)
        source, remote = transport.allocate(16 << 20), transport.remote(region, 1)
        source[:] = 1
        start = time.monotonic()
        with pytest.raises(PeerLost) as lost:
            while time.monotonic() - start < 3 * LOSS_S:
                transport.write(source, remote).wait()
        assert lost.value.peer == 1 and time.monotonic() - start < LOSS_S
        transport.close()

    assert this_node.run(body, 2, 30, **LARGE_REGION) == ["", "ended by SIGKILL"]
