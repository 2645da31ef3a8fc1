"""Recursive doubling: in lg p rounds every rank exchanges its whole array with a partner at twice the distance. Few
rounds, many bytes: for small arrays. Where p is not a power of two, ranks beyond it take part through a neighbour, as
in MPICH."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.collectives.halving_doubling import all_gather, broadcast, reduce_scatter
from scaleproof.collectives.message_schedule import Action, Message, involved
from scaleproof.spec.plugins import CollectivePlugin

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]
"""The others are doubling and halving already."""


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Both ranks of a pair send the same elements in a round, and add what they receive."""
    depth = world_size.bit_length() - 1
    core = 1 << depth
    extra = world_size - core
    for even in range(0, 2 * extra, 2):
        if involved(rank, even, even + 1):
            yield Message(0, even, even + 1, 0, count, Action.REDUCE)
    for step in range(depth):
        for v in range(core):
            source, destination = _real(v, extra), _real(v ^ 1 << step, extra)
            if involved(rank, source, destination):
                yield Message(1 + step, source, destination, 0, count, Action.REDUCE)
    for even in range(0, 2 * extra, 2):
        if involved(rank, even, even + 1):
            yield Message(1 + depth, even + 1, even, 0, count, Action.COPY)


def _real(v: int, extra: int) -> int:
    """The rank that acts as number v of the power of two."""
    return 2 * v + 1 if v < extra else v + extra


PLUGIN = CollectivePlugin(
    name="recursive_doubling",
    summary="recursive doubling with whole arrays, for small ones",
    implementation=__name__,
    exchange="all-reduce",
    topology="replicated-PS",
    exchanges=True,
)
