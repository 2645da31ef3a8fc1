"""Transfers between this rank's memory and a peer's region, as work requests on one queue pair: directly if the memory
is registered, otherwise through bounce buffers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array
from scaleproof.transports.verbs.peer_connection import STAGE_BYTES, CallHandle, PeerConnection
from scaleproof.transports.verbs.queue_pair import Piece, QueuePair

VALUE_BYTES = 8
REQUEST_BYTES = 16 << 20
"""Most bytes of one work request, so that completions show the progress of a large transfer."""


class Transfer:
    """One write or read. `remote`: address at the peer; `imm`: immediate data of a write's last piece; `value`: a word
    that follows the bytes.

    `finish` is called when the peer's device has acknowledged everything; with `early`, as soon as the bytes may
    change, which is immediately for staged bytes."""

    def __init__(
        self,
        connection: PeerConnection,
        queue_pair: QueuePair,
        data: Array,
        remote: int,
        finish: Callable[[], None] | None,
        *,
        reads: bool = False,
        imm: int | None = None,
        value: int | None = None,
        early: bool = False,
    ) -> None:
        self._connection, self._queue_pair, self._data, self._remote = connection, queue_pair, data, remote
        self._finish, self._reads, self._imm, self._value, self._early = finish, reads, imm, value, early
        self._registered = connection.device.region.offset(data) is not None
        self._position = 0
        self.awaited = finish is not None

    def step(self) -> bool:
        """Post as many pieces as fit into the queue; True when everything is posted."""
        while self._queue_pair.room > 0:
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
        """Bytes of the next piece and its bounce buffer, if it needs one; None when no bounce buffer is free."""
        remaining = self._data.size - self._position
        most = min(self._connection.device.max_message, REQUEST_BYTES) - (0 if self._value is None else VALUE_BYTES)
        if (
            self._registered
            or not remaining
            or (not self._reads and remaining + VALUE_BYTES <= self._queue_pair.inline)
        ):
            return min(remaining, most), None
        stage = self._connection.stages_out.acquire()
        return None if stage is None else (min(remaining, STAGE_BYTES, most), stage)

    def _post(self, size: int, stage: Array | None, last: bool) -> bool:
        connection = self._connection
        word = connection.words.acquire() if last and self._value is not None else None
        if last and self._value is not None and word is None:
            if stage is not None:
                connection.stages_out.release(stage)
            return False
        own = self._data[self._position : self._position + size]
        if stage is not None and not self._reads:
            stage[:size] = own
            connection.copies["staged to send"] += size
        pieces: list[Piece] = [(address_of(own if stage is None else stage), size)]
        if word is not None and self._value is not None:
            word.view(np.uint64)[0] = self._value
            pieces.append((address_of(word), VALUE_BYTES))
        opcode = self._opcode(last)
        early = self._early and (stage is not None or self._queue_pair.goes_inline(opcode, size))
        finish = self._finish if last and not early else None
        free = word is not None and self._queue_pair.goes_inline(opcode, size + VALUE_BYTES)
        held = None if free else word
        callback: Callable[[], None] | None = None if last else _show_progress
        if finish or stage is not None or held is not None:
            callback = partial(self._completed, finish, stage, held, own)
        self._queue_pair.post(opcode, pieces, (self._remote + self._position, connection.key), self._imm or 0, callback)
        if free and word is not None:
            connection.words.release(word)
        if early and last and self._finish:
            self._finish()
        return True

    def _opcode(self, last: bool) -> Any:
        e = self._connection.e
        if self._reads:
            return e.IBV_WR_RDMA_READ
        return e.IBV_WR_RDMA_WRITE if self._imm is None or not last else e.IBV_WR_RDMA_WRITE_WITH_IMM

    def _completed(
        self, finish: Callable[[], None] | None, stage: Array | None, word: Array | None, own: Array
    ) -> None:
        if stage is not None:
            if self._reads:
                own[:] = stage[: own.size]
                self._connection.copies["staged from read"] += own.size
            self._connection.stages_out.release(stage)
        if word is not None:
            self._connection.words.release(word)
        if finish:
            finish()


def _show_progress() -> None:
    """Callback of a completion that only shows progress."""


class OneSidedQueue:
    """Writes, reads and flags to one peer, posted in the order of the calls."""

    def __init__(self, connection: PeerConnection) -> None:
        self._connection = connection
        self._waiting: deque[tuple[Transfer, QueuePair, bool]] = deque()
        self._last = dict.fromkeys(connection.bulk, 0)
        """Per queue pair: number of work requests up to its last write that reports its completion."""

    def start(
        self, data: Array, remote: int, index: int, *, reads: bool = False, value: int | None = None
    ) -> CallHandle:
        """Start a write, followed by `value` if that is not None, or a read. `index` selects a queue pair."""
        call, queue_pair = CallHandle(self._connection), self._connection.bulk[index % len(self._connection.bulk)]
        self._queue(
            Transfer(self._connection, queue_pair, data, remote, call.finish, reads=reads, value=value),
            queue_pair,
            value is not None,
        )
        return call

    def flag(self, remote: int, index: int, value: int) -> None:
        """Set a word after everything written before it."""
        queue_pair = self._connection.bulk[index % len(self._connection.bulk)]
        empty = np.empty(0, np.uint8)
        self._queue(Transfer(self._connection, queue_pair, empty, remote, None, value=value), queue_pair, True)

    @property
    def empty(self) -> bool:
        """Whether everything is posted."""
        return not self._waiting

    def push(self) -> None:
        """Post transfers in order as far as possible. A transfer with a value waits until earlier writes on other queue
        pairs are acknowledged; writes on its own queue pair are ordered anyway."""
        while self._waiting:
            transfer, queue_pair, ordered = self._waiting[0]
            if ordered and any(
                other is not queue_pair and other.retired < posted for other, posted in self._last.items()
            ):
                return
            if not transfer.step():
                return
            if transfer.awaited:
                self._last[queue_pair] = queue_pair.posted
            self._waiting.popleft()

    def _queue(self, transfer: Transfer, queue_pair: QueuePair, ordered: bool) -> None:
        self._waiting.append((transfer, queue_pair, ordered))
        self.push()
