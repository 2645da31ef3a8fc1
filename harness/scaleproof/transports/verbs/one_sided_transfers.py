"""Bytes between the own memory and a peer's region, in work requests on one lane: as they lie where they are
registered, else by way of staging memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np

from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array
from scaleproof.transports.verbs.peer_connection import STAGE, Call, Link
from scaleproof.transports.verbs.queue_pair import Lane, Piece

VALUE_BYTES = 8
REQUEST_BYTES = 16 << 20
"""At most, of one work request: completions show meanwhile that a large transfer moves."""


class Transfer:
    """One write or read. `remote`: the peer's address. `imm`: the last piece of a write announces itself with it.
    `value`: a word that follows the bytes.

    `finish` is called when the peer's device has acknowledged all; with `early`, when the own bytes may change, which
    staged ones may at once."""

    def __init__(
        self,
        link: Link,
        lane: Lane,
        data: Array,
        remote: int,
        finish: Callable[[], None] | None,
        *,
        reads: bool = False,
        imm: int | None = None,
        value: int | None = None,
        early: bool = False,
    ) -> None:
        self._link, self._lane, self._data, self._remote = link, lane, data, remote
        self._finish, self._reads, self._imm, self._value, self._early = finish, reads, imm, value, early
        self._registered = link.device.region.offset(data) is not None
        self._position = 0
        self.awaited = finish is not None

    def step(self) -> bool:
        """Post what there is room for; True when everything is posted."""
        while self._lane.room > 0:
            piece = self._piece()
            if piece is None:
                return False
            size, stage = piece
            last = self._position + size == self._data.size
            if not self._post(size, stage, last):
                return False
            self._position += size
            if last:
                return True
        return False

    def _piece(self) -> tuple[int, Array | None] | None:
        """Bytes of the next piece and the memory to stage it in, if any; None: no staging memory is free."""
        left = self._data.size - self._position
        most = min(self._link.device.max_message, REQUEST_BYTES) - (0 if self._value is None else VALUE_BYTES)
        if self._registered or not left or (not self._reads and left + VALUE_BYTES <= self._lane.inline):
            return min(left, most), None
        stage = self._link.stages_out.take()
        return None if stage is None else (min(left, STAGE, most), stage)

    def _post(self, size: int, stage: Array | None, last: bool) -> bool:
        link, e = self._link, self._link.e
        word = link.words.take() if last and self._value is not None else None
        if last and self._value is not None and word is None:
            return False
        own = self._data[self._position : self._position + size]
        if stage is not None and not self._reads:
            stage[:size] = own
            link.copies["staged to send"] += size
        pieces: list[Piece] = [(address_of(own if stage is None else stage), size)]
        if word is not None and self._value is not None:
            word.view(np.uint64)[0] = self._value
            pieces.append((address_of(word), VALUE_BYTES))
        opcode = (
            e.IBV_WR_RDMA_READ
            if self._reads
            else e.IBV_WR_RDMA_WRITE
            if self._imm is None or not last
            else e.IBV_WR_RDMA_WRITE_WITH_IMM
        )
        early = self._early and (stage is not None or self._lane.goes_inline(opcode, size))
        finish = self._finish if last and not early else None
        free = word is not None and self._lane.goes_inline(opcode, size + VALUE_BYTES)
        held = None if free else word
        done: Callable[[], None] | None = None if last else _moves
        if finish or stage is not None or held is not None:
            done = partial(self._done, finish, stage, held, own)
        self._lane.post(opcode, pieces, (self._remote + self._position, link.key), self._imm or 0, done)
        if free and word is not None:
            link.words.give(word)
        if early and last and self._finish:
            self._finish()
        return True

    def _done(self, finish: Callable[[], None] | None, stage: Array | None, word: Array | None, own: Array) -> None:
        if stage is not None:
            if self._reads:
                own[:] = stage[: own.size]
                self._link.copies["staged from read"] += own.size
            self._link.stages_out.give(stage)
        if word is not None:
            self._link.words.give(word)
        if finish:
            finish()


def _moves() -> None:
    """A completion that only shows that bytes move."""


class OneSided:
    """Writes, reads and flags to one peer, posted in the order in which they were asked for."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: deque[tuple[Transfer, Lane, bool]] = deque()
        self._last = dict.fromkeys(link.bulk, 0)
        """Work requests posted on a lane when its last write had gone, whose completion will be seen."""

    def start(self, data: Array, remote: int, lane: int, *, reads: bool = False, value: int | None = None) -> Call:
        """A write, with a value behind it where one is given, or a read."""
        call, on = Call(self._link), self._link.bulk[lane % len(self._link.bulk)]
        self._queue(
            Transfer(self._link, on, data, remote, call.finish, reads=reads, value=value), on, value is not None
        )
        return call

    def flag(self, remote: int, lane: int, value: int) -> None:
        """Set a word after everything written before it."""
        on = self._link.bulk[lane % len(self._link.bulk)]
        self._queue(Transfer(self._link, on, np.empty(0, np.uint8), remote, None, value=value), on, True)

    @property
    def empty(self) -> bool:
        """Whether everything is posted."""
        return not self._waiting

    def push(self) -> None:
        """Post what can be posted. What carries a value waits until earlier writes on other lanes are acknowledged; its
        own lane keeps order."""
        while self._waiting:
            transfer, lane, ordered = self._waiting[0]
            if ordered and any(other is not lane and other.retired < posted for other, posted in self._last.items()):
                return
            if not transfer.step():
                return
            if transfer.awaited:
                self._last[lane] = lane.posted
            self._waiting.popleft()

    def _queue(self, transfer: Transfer, lane: Lane, ordered: bool) -> None:
        self._waiting.append((transfer, lane, ordered))
        self.push()
