"""Binomial tree: ceil(lg p) rounds down or up; few messages, so it suits small arrays."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.collectives.message_schedule import Action, Message, bound, involved
from scaleproof.spec.plugins import CollectivePlugin


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Reduce to rank 0, then broadcast from it."""
    yield from _reduce(world_size, count, rank)
    yield from _broadcast(_depth(world_size), world_size, count, 0, rank)


def reduce_scatter(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Reduce to rank 0, then a binomial scatter of the blocks."""
    yield from _reduce(world_size, count, rank)
    depth = _depth(world_size)
    for step in reversed(range(depth)):
        for parent in range(0, world_size - (1 << step), 2 << step):
            child = parent + (1 << step)
            if involved(rank, parent, child):
                yield Message(
                    2 * depth - 1 - step, parent, child, *_subtree(child, step, world_size, count), Action.COPY
                )


def all_gather(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """A binomial gather of the blocks to rank 0, then broadcast from it."""
    depth = _depth(world_size)
    for step in range(depth):
        for parent in range(0, world_size - (1 << step), 2 << step):
            child = parent + (1 << step)
            if involved(rank, parent, child):
                yield Message(step, child, parent, *_subtree(child, step, world_size, count), Action.COPY)
    yield from _broadcast(depth, world_size, count, 0, rank)


def broadcast(world_size: int, count: int, root: int = 0, rank: int | None = None) -> Iterator[Message]:
    """From the root to half of the ranks, to a quarter from both, and so on."""
    yield from _broadcast(0, world_size, count, root, rank)


def _depth(world_size: int) -> int:
    return (world_size - 1).bit_length()


def _subtree(child: int, step: int, world_size: int, count: int) -> tuple[int, int]:
    """Elements of the blocks of ranks [child, child + 2^step)."""
    return bound(child, world_size, count), bound(min(child + (1 << step), world_size), world_size, count)


def _reduce(world_size: int, count: int, rank: int | None) -> Iterator[Message]:
    for step in range(_depth(world_size)):
        for parent in range(0, world_size - (1 << step), 2 << step):
            child = parent + (1 << step)
            if involved(rank, parent, child):
                yield Message(step, child, parent, 0, count, Action.REDUCE)


def _broadcast(first_round: int, world_size: int, count: int, root: int, rank: int | None) -> Iterator[Message]:
    depth = _depth(world_size)
    for step in reversed(range(depth)):
        for parent in range(0, world_size - (1 << step), 2 << step):
            source, destination = (root + parent) % world_size, (root + parent + (1 << step)) % world_size
            if involved(rank, source, destination):
                yield Message(first_round + depth - 1 - step, source, destination, 0, count, Action.COPY)


PLUGIN = CollectivePlugin(
    name="tree",
    summary="binomial tree",
    implementation=__name__,
    exchange="binomial-tree",
    topology="tree",
)
