"""Checks of the wire between nodes: a cable that is pulled and put back, a node that is cut off, bytes that a capture
can be held against, training."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from scaleproof.core.atomic_write import write_json
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost
from scaleproof.fabric.guests.guest_plan import LINKS
from scaleproof.transports.contract import Region
from scaleproof.transports.verbs.rdma import Rdma
from tests.integration.rdma.checks import ThisNode, check, connect

DOWN_S = 0.6
"""Longer than one time-out of the device, far shorter than all of its retries."""
ROUNDS = 6
"""A busy coordinator may pull the cable too late for a round."""
LOSS_S = 12.0
"""What the device's retries take, and what busy cores add."""
SMALL, LARGE, READ = (20, 5000), (7, 300_000), (3, 200_000)
"""Messages, or reads, and the bytes of each."""


def cable(node: int, plugged: bool) -> None:
    """Tell the coordinator, who looks every 50 ms."""
    write_json(Path(os.environ["SCALEPROOF_SHARED"]) / LINKS, {str(node): plugged})


@check
def a_link_set_down_and_up_loses_nothing(this_node: ThisNode) -> None:
    def body(context: RankContext) -> None:
        transport, peer = connect(context), 1 - context.rank
        region = transport.register(8)
        out, back, received = transport.allocate(2 << 20), transport.allocate(2 << 20), np.zeros(1, np.uint8)
        for number in range(ROUNDS):
            out[:] = 7 * number + context.rank
            if context.rank == 0:
                cable(1, False)
                until = time.monotonic() + 5
                while time.monotonic() < until and _answers(transport, transport.remote(region, 1)):
                    time.sleep(0.02)
            sends, receives = (
                [transport.send(out, peer), transport.send(out[:100], peer)],
                [transport.recv(back, peer), transport.recv(back[:100], peer)],
            )
            if context.rank == 0:
                time.sleep(DOWN_S)
                received[0] = not receives[0].test()  # the peer cannot have sent it: it needs our grant
                cable(1, True)
            for handle in sends + receives:
                handle.wait()
            assert (back == 7 * number + peer).all()
            (transport.recv(received, 0) if context.rank else transport.send(received, 1)).wait()
            transport.barrier()
            if received[0]:
                transport.close()
                return
        raise AssertionError("no cable was out in time")

    this_node.succeed(body, 2, 40)


def _answers(transport: Rdma, remote: Region) -> bool:
    """Whether the peer's device acknowledges a write at once."""
    handle, until = transport.write(np.zeros(8, np.uint8), remote), time.monotonic() + 0.3
    while not handle.test() and time.monotonic() < until:
        time.sleep(0.005)
    return handle.test()


@check
def a_node_that_is_cut_off_is_lost_within_seconds(this_node: ThisNode) -> None:
    """Both sides say so, and it was in mid-write."""

    def body(context: RankContext) -> None:
        transport, peer = connect(context), 1 - context.rank
        region = transport.register(1 << 20)
        source, remote = transport.allocate(1 << 20), transport.remote(region, peer)
        transport.barrier()
        if context.rank == 0:
            cable(1, False)
        start = time.monotonic()
        with pytest.raises(PeerLost) as lost:
            while time.monotonic() - start < 3 * LOSS_S:
                transport.write(source, remote).wait()
        assert lost.value.peer == peer and time.monotonic() - start < LOSS_S
        transport.close()

    this_node.succeed(body, 2, 40)


@check
def known_traffic(this_node: ThisNode) -> None:
    """What the test holds against the frames: rank 0 sends small and large registered messages and reads; the counters
    go to the shared folder."""

    def body(context: RankContext) -> None:
        transport, peer = connect(context), 1 - context.rank
        region = transport.register(READ[1])
        small, large, target = transport.allocate(SMALL[1]), transport.allocate(LARGE[1]), transport.allocate(READ[1])
        transport.barrier()
        for count, buffer in ((SMALL[0], small), (LARGE[0], large)):
            for _ in range(count):
                (transport.recv(buffer, 0) if context.rank else transport.send(buffer, peer)).wait()
        if context.rank == 0:
            for _ in range(READ[0]):
                transport.read(transport.remote(region, 1), target).wait()
        transport.barrier()
        transport.mesh.close()
        (this_node.shared / f"operations-{context.rank}.json").write_text(json.dumps(dict(transport.operations)))
        transport.close()
        assert np.array_equal(
            target if context.rank == 0 else np.zeros(1), np.zeros(READ[1] if context.rank == 0 else 1)
        )

    this_node.succeed(body, 2, 40)
