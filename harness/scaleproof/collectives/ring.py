"""Ring: every rank sends only to its right neighbour; bandwidth-optimal, 2(p-1) rounds for all_reduce."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.collectives.message_schedule import Action, Message, bound
from scaleproof.spec.plugins import CollectivePlugin


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Ring reduce-scatter, then ring all-gather."""
    yield from reduce_scatter(world_size, count, rank)
    yield from _gather(world_size, count, rank, first_round=world_size - 1)


def reduce_scatter(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """The partial sum of block b starts at rank b+1 and ends at rank b."""
    for step in range(world_size - 1):
        for source in _senders(world_size, rank):
            yield _message(step, source, (source - step - 1) % world_size, world_size, count, Action.REDUCE)


def all_gather(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Every block travels once around the ring."""
    yield from _gather(world_size, count, rank, first_round=0)


def broadcast(world_size: int, count: int, root: int = 0, rank: int | None = None) -> Iterator[Message]:
    """A pipelined chain from the root: part k leaves hop h in round k + h."""
    for step in range(2 * world_size - 2):
        for hop in range(max(0, step - world_size + 1), min(step, world_size - 2) + 1):
            source = (root + hop) % world_size
            message = _message(step, source, step - hop, world_size, count, Action.COPY)
            if rank is None or rank in (source, message.destination):
                yield message


def _gather(world_size: int, count: int, rank: int | None, first_round: int) -> Iterator[Message]:
    for step in range(world_size - 1):
        for source in _senders(world_size, rank):
            yield _message(first_round + step, source, (source - step) % world_size, world_size, count, Action.COPY)


def _senders(world_size: int, rank: int | None) -> list[int]:
    return list(range(world_size)) if rank is None else [(rank - 1) % world_size, rank]


def _message(step: int, source: int, block: int, world_size: int, count: int, action: Action) -> Message:
    start, stop = bound(block, world_size, count), bound(block + 1, world_size, count)
    return Message(step, source, (source + 1) % world_size, start, stop, action)


PLUGIN = CollectivePlugin(
    name="ring",
    summary="ring reduce-scatter and all-gather",
    implementation=__name__,
    exchange="all-reduce",
    topology="closed-ring",
    rounds_are_alike=True,
)
