"""Everything between this rank and one peer: queue pairs, credits, bounce buffers, short messages, and whether the peer
is still there."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array
from scaleproof.transports.verbs.credits import Credits, Kind, pack
from scaleproof.transports.verbs.queue_pair import Piece, QueuePair
from scaleproof.transports.verbs.verbs_device import VerbsDevice

BULK_QUEUE_PAIRS = 2
"""Queue pairs for large messages and one-sided operations, beside the one for messages."""
SLOT_BYTES = 16 << 10
"""Bytes of a receive request on the message queue pair; larger messages are written into the receiver's region
directly."""
MESSAGE_RECEIVES, BULK_RECEIVES = 32, 16
"""Receive requests of each queue pair."""
STAGE_BYTES, STAGE_COUNT = 256 << 10, 4
"""Bytes of a bounce buffer, through which bytes from outside of the registered region pass, and buffers per peer and
direction."""
WORD_COUNT = 64
"""Registered words per peer, for values behind one-sided writes."""
SEND_DEPTH = 128
"""Most work requests of a queue pair."""
PROBE_NS = 100_000_000
"""A rank that waits probes the peer's device this often."""


class BufferPool:
    """Free buffers in registered memory, allocated at the first use."""

    def __init__(self, device: VerbsDevice, count: int, nbytes: int) -> None:
        self._device, self._count, self._nbytes = device, count, nbytes
        self._free: list[Array] | None = None

    def acquire(self) -> Array | None:
        """A free buffer; None when all are in use."""
        if self._free is None:
            memory = self._device.region.allocate(self._count * self._nbytes)
            self._free = [memory[at : at + self._nbytes] for at in range(0, memory.size, self._nbytes)]
        return self._free.pop() if self._free else None

    def release(self, buffer: Array) -> None:
        """Return a buffer to the pool."""
        assert self._free is not None
        self._free.append(buffer)


class PeerConnection:
    """The connection to one peer. `advance` polls completions of all connections; `block` waits for a condition and
    raises PeerLost when the peer is gone. `lost`: the error that broke the connection."""

    def __init__(
        self,
        device: VerbsDevice,
        peer: int,
        depth: int,
        counters: tuple[Counter[str], Counter[str]],
        advance: Callable[[], bool],
        block: Callable[[Callable[[], bool]], None],
    ) -> None:
        self.advance, self.block = advance, block
        self.device, self.peer, self.e = device, peer, device.verbs.e
        self.operations, self.copies = counters
        self.control = QueuePair(device, depth, MESSAGE_RECEIVES, self.operations)
        self.bulk = [QueuePair(device, depth, BULK_RECEIVES, self.operations) for _ in range(BULK_QUEUE_PAIRS)]
        self.queue_pairs = [self.control, *self.bulk]
        self.credits = Credits(MESSAGE_RECEIVES)
        self.lost: TransportError | None = None
        self.base = self.key = 0
        self.stages_out, self.stages_in = (
            BufferPool(device, STAGE_COUNT, STAGE_BYTES + 8),
            BufferPool(device, STAGE_COUNT, STAGE_BYTES),
        )
        self.words = BufferPool(device, WORD_COUNT, 8)
        self.short_messages: deque[bytes] = deque()
        self._short_to_send: deque[bytes] = deque()
        self._slots = device.region.allocate(2 * MESSAGE_RECEIVES * SLOT_BYTES)
        self._slot_posts: list[int] = [-1] * MESSAGE_RECEIVES
        self._sent = 0
        self._zero = device.region.allocate(8)
        self._zero[:] = 0
        self._probe_address = 0
        self._probing = False
        self._last_probe_ns = 0

    def describe(self) -> dict[str, Any]:
        """What the peer needs to know about this side."""
        return {
            "queue_pairs": [queue_pair.describe() for queue_pair in self.queue_pairs],
            "probe": self.device.region.offset(self._zero),
        }

    def connect(self, device: dict[str, Any], theirs: dict[str, Any], mtu: int) -> None:
        """Connect all queue pairs and post their receive requests. `device`: the peer's description of its device,
        `theirs`: of its side of this connection."""
        self.base, self.key, self._probe_address = device["base"], device["key"], device["base"] + theirs["probe"]
        for queue_pair, described in zip(self.queue_pairs, theirs["queue_pairs"], strict=True):
            queue_pair.connect(described, device["lid"], device["gid"], mtu)
        for slot in range(MESSAGE_RECEIVES):
            self._receive(slot)
        for index in range(BULK_QUEUE_PAIRS):
            for _ in range(BULK_RECEIVES):
                self.post_bulk_receive(index)

    def post_bulk_receive(self, index: int) -> None:
        """Post a receive request on a queue pair for large messages: immediate data only, the bytes are written
        elsewhere."""
        self.bulk[index].receive(0, address_of(self._zero), self._zero.size)

    def payload(self, slot: int, nbytes: int) -> Array:
        """The payload of a message on the message queue pair; valid until `repost`."""
        return self._slots[slot * SLOT_BYTES : slot * SLOT_BYTES + nbytes]

    def repost(self, slot: int, paid: bool) -> None:
        """Post the slot's receive request again; `paid`: its message has used a credit."""
        self._receive(slot)
        if paid:
            self.credits.reposted()

    def may_send(self, paid: bool = True) -> bool:
        """Whether the message queue pair can take a message now; `paid`: one that needs a credit."""
        free = self._slot_posts[self._sent % MESSAGE_RECEIVES] < self.control.retired
        return free and not self.lost and self.control.room > 0 and (not paid or self.credits.available > 0)

    def send_message(
        self,
        kind: Kind,
        number: int = 0,
        payload: Array | bytes = b"",
        pieces: Sequence[Piece] | None = None,
        callback: Callable[[], None] | None = None,
    ) -> None:
        """Send on the message queue pair: `pieces` of memory, or a copy of the payload; `may_send` must be True."""
        if kind not in (Kind.CREDIT, Kind.LEAVING):
            self.credits.use()
        slot = self._sent % MESSAGE_RECEIVES
        if pieces is None:
            copy = self._slots[(MESSAGE_RECEIVES + slot) * SLOT_BYTES :][: len(payload)]
            copy[:] = np.frombuffer(payload, np.uint8)
            pieces = [(address_of(copy), len(payload))]
        self._slot_posts[slot] = self.control.post(
            self.e.IBV_WR_SEND_WITH_IMM, pieces, None, pack(kind, self.credits.return_owed(), number), callback
        )
        self._sent += 1

    def post_short(self, message: bytes) -> None:
        """Queue a short message; see ShortMessages.post_message."""
        self._short_to_send.append(message)

    def push(self) -> None:
        """Send queued short messages as far as possible, and return credits when they are due."""
        while self._short_to_send and self.may_send():
            self.send_message(Kind.SHORT, payload=self._short_to_send.popleft())
        if self.credits.due and self.may_send(paid=False):
            self.send_message(Kind.CREDIT)

    def fail(self, error: TransportError) -> None:
        """Mark the connection as broken; the first error counts."""
        self.lost = self.lost or error

    def peer_left(self) -> None:
        """The peer has sent its last message."""
        self.fail(PeerLost(self.peer, f"rank {self.peer} has closed its transport"))

    def check(self) -> None:
        """Raise the error that broke the connection; else probe the peer's device every PROBE_NS. Without an answer the
        connection breaks."""
        if self.lost:
            raise self.lost
        now = time.monotonic_ns()
        if not self._probing and now - self._last_probe_ns > PROBE_NS and self.control.room:
            self._probing, self._last_probe_ns = True, now
            self._write_probe(self.control, self._answered)
            self.operations["probe"] += 1

    def flush(self) -> None:
        """Make sure that the completion of every posted work request will be seen."""
        for queue_pair in self.queue_pairs:
            if queue_pair.unsignalled and queue_pair.room and not self.lost:
                self._write_probe(queue_pair, _ignore)

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way, or the connection is broken."""
        return self.lost is not None or (
            not self._short_to_send and all(queue_pair.posted == queue_pair.retired for queue_pair in self.queue_pairs)
        )

    def close(self) -> None:
        """Destroy the queue pairs."""
        for queue_pair in self.queue_pairs:
            queue_pair.close()

    def _write_probe(self, queue_pair: QueuePair, callback: Callable[[], None]) -> None:
        queue_pair.post(
            self.e.IBV_WR_RDMA_WRITE, [(address_of(self._zero), 8)], (self._probe_address, self.key), callback=callback
        )

    def _answered(self) -> None:
        self._probing = False

    def _receive(self, slot: int) -> None:
        self.control.receive(slot, address_of(self._slots) + slot * SLOT_BYTES, SLOT_BYTES)


class CallHandle:
    """Handle of a call on a connection."""

    def __init__(self, connection: PeerConnection) -> None:
        self.done = False
        self.connection = connection

    def finish(self) -> None:
        """Mark it as done."""
        self.done = True

    def test(self) -> bool:
        if not self.done:
            self.connection.advance()
            if self.connection.lost and not self.done:
                raise self.connection.lost
        return self.done

    def wait(self) -> None:
        if not self.done:
            self.connection.block(self.test)


def _ignore() -> None:
    """For a completion that nobody waits for."""
