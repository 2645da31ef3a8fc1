"""Executes a collective's messages over point-to-point sends and receives, round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.collectives.message_schedule import Action, Message, messages
from scaleproof.spec.case import Operation
from scaleproof.transports.contract import UFUNCS, Array, Handle, PointToPoint, ReduceOperation, Reducing

if TYPE_CHECKING:
    from scaleproof.core.board import Post

PIECE = 1 << 20
"""Bytes that are received before they are reduced, over a transport that cannot reduce on arrival."""


@lru_cache(maxsize=1024)
def rounds(
    algorithm: str, operation: Operation, world_size: int, count: int, root: int, rank: int
) -> tuple[tuple[Message, ...], ...]:
    """The compiled plan of one rank: its messages, grouped by round."""
    plan: dict[int, list[Message]] = {}
    for message in messages(algorithm, operation, world_size, count, root=root, rank=rank):
        plan.setdefault(message.round, []).append(message)
    return tuple(tuple(plan[number]) for number in sorted(plan))


@lru_cache(maxsize=1024)
def exchanging(
    algorithm: str, operation: Operation, world_size: int, count: int, root: int, rank: int
) -> tuple[bool, ...]:
    """For each round of one rank's plan, whether it sends elements that it also receives."""
    return tuple(
        any(
            sent.start < received.stop and received.start < sent.stop
            for sent in plan
            for received in plan
            if sent.source == rank and received.destination == rank
        )
        for plan in rounds(algorithm, operation, world_size, count, root, rank)
    )


class MessageEngine:
    """Runs plans over sends and receives. It reduces on arrival where the transport can (`recv_reduce`), else piece by
    piece from a scratch buffer."""

    def __init__(self, transport: PointToPoint, post: Post | None = None) -> None:
        self._transport = transport
        self._begin_round: Callable[[int], None] = post.round if post else _ignore_round
        self._recv_reduce = getattr(transport, "recv_reduce", None)
        self._scratch = transport.allocate(2 * PIECE) if self._recv_reduce is None else None
        self._copy = np.empty(0, np.uint8)

    def run(
        self, algorithm: str, operation: Operation, work: Array, reduction: ReduceOperation, root: int
    ) -> Iterator[Handle]:
        """Yields the handles to wait for, in order; a handle must be done before the next one is requested."""
        transport = self._transport
        call = algorithm, operation, transport.world_size, work.size, root, transport.rank
        for number, (round_messages, exchanges) in enumerate(zip(rounds(*call), exchanging(*call), strict=True), 1):
            self._begin_round(number)
            sends, receives = [], []
            before = self._copied(work) if exchanges else work
            for message in round_messages:
                if message.source == transport.rank:
                    sends += [transport.send(piece, message.destination) for piece in self._pieces(before, message)]
            for message in round_messages:
                if message.source == transport.rank:
                    continue
                if message.action is Action.COPY:
                    receives.append(transport.recv(work[message.start : message.stop], message.source))
                elif self._recv_reduce is not None:
                    receives.append(self._recv_reduce(work[message.start : message.stop], message.source, reduction))
                else:
                    yield from self._reduce_pieces(work, message, UFUNCS[reduction])
            yield from receives
            yield from sends

    def _copied(self, work: Array) -> Array:
        """The work buffer as it is before a round that sends what it also receives."""
        if self._copy.nbytes < work.nbytes:
            self._copy = self._transport.allocate(work.nbytes)
        copy = self._copy[: work.nbytes].view(work.dtype)
        np.copyto(copy, work)
        return copy

    def _pieces(self, work: Array, message: Message) -> list[Array]:
        step = message.stop - message.start
        if self._recv_reduce is None and message.action is Action.REDUCE:
            step = max(1, PIECE // work.itemsize)
        return [work[start : min(start + step, message.stop)] for start in range(message.start, message.stop, step)]

    def _reduce_pieces(self, work: Array, message: Message, ufunc: Reducing) -> Iterator[Handle]:
        """Receive piece k + 1 into one half of the scratch while piece k is reduced from the other."""
        assert self._scratch is not None
        pieces = self._pieces(work, message)
        halves = [self._scratch[:PIECE].view(work.dtype), self._scratch[PIECE:].view(work.dtype)]
        arrival = self._transport.recv(halves[0][: pieces[0].size], message.source)
        for number, piece in enumerate(pieces):
            yield arrival
            if number + 1 < len(pieces):
                arrival = self._transport.recv(halves[(number + 1) % 2][: pieces[number + 1].size], message.source)
            ufunc(piece, halves[number % 2][: piece.size], out=piece)


def _ignore_round(number: int) -> None:
    """Without a board the round is not reported."""
