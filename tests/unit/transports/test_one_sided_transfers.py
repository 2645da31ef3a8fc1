"""Writes and reads of transport rdma on a queue pair without a device: which buffers they hold, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from scaleproof.transports.verbs.one_sided_transfers import Transfer
from scaleproof.transports.verbs.peer_connection import STAGE_COUNT, BufferPool, PeerConnection
from scaleproof.transports.verbs.queue_pair import QueuePair


class Device:
    """A device whose region holds what it allocates; no caller's array is registered."""

    max_message = 1 << 20

    def __init__(self) -> None:
        self.region = SimpleNamespace(allocate=lambda size: np.empty(size, np.uint8), offset=lambda array: None)


class RecordingQueuePair:
    """Accepts every work request without inline data; `complete` ends the oldest one."""

    room, inline = 128, 0

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None] | None] = []

    def goes_inline(self, opcode: Any, size: int) -> bool:
        return False

    def post(self, opcode: Any, pieces: Any, remote: Any, imm: int, done: Callable[[], None] | None) -> None:
        self.callbacks.append(done)

    def complete(self) -> None:
        callback = self.callbacks.pop(0)
        assert callback is not None
        callback()


def connection(word_count: int) -> PeerConnection:
    device = cast(Any, Device())
    opcodes = SimpleNamespace(IBV_WR_RDMA_READ=0, IBV_WR_RDMA_WRITE=1, IBV_WR_RDMA_WRITE_WITH_IMM=2)
    pools = {"stages_out": BufferPool(device, STAGE_COUNT, 4096), "words": BufferPool(device, word_count, 8)}
    return cast(PeerConnection, SimpleNamespace(device=device, e=opcodes, key=0, copies=Counter(), **pools))


def test_a_write_that_waits_for_a_word_holds_no_bounce_buffer() -> None:
    peer, queue_pair = connection(word_count=1), RecordingQueuePair()

    def write(data: np.ndarray) -> Transfer:
        return Transfer(peer, cast(QueuePair, queue_pair), data, 0, None, value=7)

    assert write(np.empty(0, np.uint8)).step()  # a flag: it takes the only word
    waiting = write(np.arange(64, dtype=np.uint8))
    for _ in range(2 * STAGE_COUNT):
        assert not waiting.step()
    queue_pair.complete()
    assert waiting.step()
    queue_pair.complete()
    buffers = [peer.stages_out.acquire() for _ in range(STAGE_COUNT)]
    assert all(buffer is not None for buffer in buffers) and peer.stages_out.acquire() is None
