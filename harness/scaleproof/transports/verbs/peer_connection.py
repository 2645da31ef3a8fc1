"""Everything between this rank and one peer: its lanes, its credits, memory to stage through, short words, and whether
the peer is still there."""

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
from scaleproof.transports.verbs.queue_pair import Lane, Piece
from scaleproof.transports.verbs.verbs_device import Device

BULK_LANES = 2
"""Queue pairs for large messages and one-sided operations, beside the one for short messages."""
SLOT = 16 << 10
"""Bytes of a receive request on the short lane: larger messages are written straight into the receiver's region."""
RECEIVES, BULK_RECEIVES = 32, 16
STAGE, STAGES = 256 << 10, 4
"""Pieces in which bytes from outside of the registered region pass through it, and how many of them per peer and
direction."""
WORDS = 64
SEND_DEPTH = 128
PROBE_NS = 100_000_000
"""A rank that waits asks the peer's device for a sign of life this often."""


class Pool:
    """Free pieces of staging memory, cut when first needed."""

    def __init__(self, device: Device, count: int, nbytes: int) -> None:
        self._device, self._count, self._nbytes = device, count, nbytes
        self._free: list[Array] | None = None

    def take(self) -> Array | None:
        """A free piece; None when all are in use."""
        if self._free is None:
            memory = self._device.region.allocate(self._count * self._nbytes)
            self._free = [memory[at : at + self._nbytes] for at in range(0, memory.size, self._nbytes)]
        return self._free.pop() if self._free else None

    def give(self, piece: Array) -> None:
        """It is free again."""
        assert self._free is not None
        self._free.append(piece)


class Link:
    """One peer. `turn` polls completions for all links; `block` waits for a condition and notices when the peer is
    gone."""

    def __init__(
        self,
        device: Device,
        peer: int,
        depth: int,
        counters: tuple[Counter[str], Counter[str]],
        turn: Callable[[], bool],
        block: Callable[[Callable[[], bool]], None],
    ) -> None:
        self.turn, self.block = turn, block
        self.device, self.peer, self.e = device, peer, device.verbs.e
        self.operations, self.copies = counters
        self.control = Lane(device, depth, RECEIVES, self.operations)
        self.bulk = [Lane(device, depth, BULK_RECEIVES, self.operations) for _ in range(BULK_LANES)]
        self.lanes = [self.control, *self.bulk]
        self.credits = Credits(RECEIVES)
        self.lost: TransportError | None = None
        self.base = self.key = 0
        self.stages_out, self.stages_in = Pool(device, STAGES, STAGE + 8), Pool(device, STAGES, STAGE)
        self.words = Pool(device, WORDS, 8)
        self.notes: deque[bytes] = deque()
        self._unsaid: deque[bytes] = deque()
        self._slots = device.region.allocate(2 * RECEIVES * SLOT)
        self._slot_posts: list[int] = [-1] * RECEIVES
        self._said = 0
        self._zero = device.region.allocate(8)
        self._zero[:] = 0
        self._probe_at = 0
        self._probing = False
        self._probed = 0

    def describe(self) -> dict[str, Any]:
        """What the peer needs to know of this side."""
        return {"lanes": [lane.describe() for lane in self.lanes], "probe": self.device.region.offset(self._zero)}

    def connect(self, place: dict[str, Any], theirs: dict[str, Any], mtu: int) -> None:
        """`place`: what the peer says of itself, `theirs` of its side of this link."""
        self.base, self.key, self._probe_at = place["base"], place["key"], place["base"] + theirs["probe"]
        for lane, described in zip(self.lanes, theirs["lanes"], strict=True):
            lane.connect(described, place["lid"], place["gid"], mtu)
        for slot in range(RECEIVES):
            self._receive(slot)
        for index in range(BULK_LANES):
            for _ in range(BULK_RECEIVES):
                self.expect(index)

    def expect(self, index: int) -> None:
        """Post a receive request on a lane for large messages: immediate data only, the bytes are written elsewhere."""
        self.bulk[index].receive(0, address_of(self._zero), self._zero.size)

    def arrived(self, slot: int, nbytes: int) -> Array:
        """The payload of a message on the short lane; valid until `again`."""
        return self._slots[slot * SLOT : slot * SLOT + nbytes]

    def again(self, slot: int, paid: bool) -> None:
        """Post the slot's receive request anew."""
        self._receive(slot)
        if paid:
            self.credits.posted()

    def may_say(self, paid: bool = True) -> bool:
        """Whether a message can go on the short lane now."""
        free = self._slot_posts[self._said % RECEIVES] < self.control.retired
        return free and not self.lost and self.control.room > 0 and (not paid or self.credits.left > 0)

    def say(
        self,
        kind: Kind,
        number: int = 0,
        payload: Array | bytes = b"",
        pieces: Sequence[Piece] | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Send on the short lane: `pieces` of memory, or a copy of the payload; `may_say` was asked before."""
        if kind not in (Kind.CREDIT, Kind.LEAVING):
            self.credits.take()
        slot = self._said % RECEIVES
        if pieces is None:
            place = self._slots[(RECEIVES + slot) * SLOT :][: len(payload)]
            place[:] = np.frombuffer(payload, np.uint8)
            pieces = [(address_of(place), len(payload))]
        self._slot_posts[slot] = self.control.post(
            self.e.IBV_WR_SEND_WITH_IMM, pieces, None, pack(kind, self.credits.give(), number), done
        )
        self._said += 1

    def note(self, message: bytes) -> None:
        """Send a short message beside `send` and `recv`."""
        self._unsaid.append(message)

    def push(self) -> None:
        """Say what could not be said before, and give credits back when it is time."""
        while self._unsaid and self.may_say():
            self.say(Kind.NOTE, payload=self._unsaid.popleft())
        if self.credits.due and self.may_say(paid=False):
            self.say(Kind.CREDIT)

    def fail(self, error: TransportError) -> None:
        """Nothing works on this link any more; the first error counts."""
        self.lost = self.lost or error

    def left(self) -> None:
        """The peer said its last word."""
        self.fail(PeerLost(self.peer, f"rank {self.peer} has closed its transport"))

    def check(self) -> None:
        """Raise what broke the link; else ask the peer's device for a sign of life, now and then. No answer breaks the
        link."""
        if self.lost:
            raise self.lost
        now = time.monotonic_ns()
        if not self._probing and now - self._probed > PROBE_NS and self.control.room:
            self._probing, self._probed = True, now
            self._touch(self.control, self._answered)
            self.operations["probe"] += 1

    def flush(self) -> None:
        """Have the completion of everything posted seen."""
        for lane in self.lanes:
            if lane.unseen and lane.room and not self.lost:
                self._touch(lane, _nothing)

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way any more, or nothing can be."""
        return self.lost is not None or (not self._unsaid and all(lane.posted == lane.retired for lane in self.lanes))

    def close(self) -> None:
        """Destroy the queue pairs."""
        for lane in self.lanes:
            lane.close()

    def _touch(self, lane: Lane, done: Callable[[], None]) -> None:
        lane.post(self.e.IBV_WR_RDMA_WRITE, [(address_of(self._zero), 8)], (self._probe_at, self.key), done=done)

    def _answered(self) -> None:
        self._probing = False

    def _receive(self, slot: int) -> None:
        self.control.receive(slot, address_of(self._slots) + slot * SLOT, SLOT)


class Call:
    """A call under way on a link."""

    def __init__(self, link: Link) -> None:
        self.done = False
        self.link = link

    def finish(self) -> None:
        """It is done."""
        self.done = True

    def test(self) -> bool:
        if not self.done:
            self.link.turn()
            if self.link.lost and not self.done:
                raise self.link.lost
        return self.done

    def wait(self) -> None:
        if not self.done:
            self.link.block(self.test)


def _nothing() -> None:
    """Nobody waits."""
