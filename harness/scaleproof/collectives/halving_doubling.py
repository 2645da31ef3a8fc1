"""Recursive halving and recursive doubling (Rabenseifner; MPICH's form for any world size): 2 lg p rounds,
bandwidth-optimal for p = 2^k.

When p is not a power of two, the first 2r ranks (r = p - 2^k) form pairs: the even rank of a pair sends its part to the
odd rank first and receives the result at the end. This leaves 2^k core ranks. Core v stands for the blocks of one rank
or of two adjacent ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scaleproof.collectives.message_schedule import Action, Message, bound, involved
from scaleproof.spec.plugins import CollectivePlugin

Edge = Callable[[int], int]
"""First element of core v's part; of 2^k, the count."""


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Whole arrays to the core, halving, doubling, whole arrays from the core."""
    core, extra = _core(world_size)
    yield from _pairs(0, extra, rank, lambda v: (2 * v, 2 * v + 1), lambda _: (0, count), Action.REDUCE)
    depth = core.bit_length() - 1

    def edge(v: int) -> int:
        return bound(v, core, count)

    yield from _halve(1, core, extra, edge, rank)
    yield from _double(1 + depth, core, extra, edge, rank)
    yield from _pairs(1 + 2 * depth, extra, rank, lambda v: (2 * v + 1, 2 * v), lambda _: (0, count), Action.COPY)


def reduce_scatter(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Whole arrays to the core, halving, then the even rank of each pair gets its block."""
    core, extra = _core(world_size)
    yield from _pairs(0, extra, rank, lambda v: (2 * v, 2 * v + 1), lambda _: (0, count), Action.REDUCE)
    yield from _halve(1, core, extra, lambda v: bound(_first(v, extra), world_size, count), rank)
    yield from _pairs(
        core.bit_length(),
        extra,
        rank,
        lambda v: (2 * v + 1, 2 * v),
        lambda v: _block(2 * v, world_size, count),
        Action.COPY,
    )


def all_gather(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Blocks of the even ranks to the core, doubling, then all other blocks back."""
    core, extra = _core(world_size)
    yield from _pairs(
        0, extra, rank, lambda v: (2 * v, 2 * v + 1), lambda v: _block(2 * v, world_size, count), Action.COPY
    )
    yield from _double(1, core, extra, lambda v: bound(_first(v, extra), world_size, count), rank)
    last = core.bit_length()
    yield from _pairs(
        last, extra, rank, lambda v: (2 * v + 1, 2 * v), lambda v: (0, bound(2 * v, world_size, count)), Action.COPY
    )
    yield from _pairs(
        last,
        extra,
        rank,
        lambda v: (2 * v + 1, 2 * v),
        lambda v: (bound(2 * v + 1, world_size, count), count),
        Action.COPY,
    )


def broadcast(world_size: int, count: int, root: int = 0, rank: int | None = None) -> Iterator[Message]:
    """Binomial scatter over 2^k ranks from the root, doubling, then the whole array to the ranks beyond 2^k."""
    core, _ = _core(world_size)
    depth = core.bit_length() - 1

    def real(v: int) -> int:
        return (root + v) % world_size

    for step in range(depth):
        half = core >> (step + 1)
        for v in range(0, core, 2 * half):
            if involved(rank, real(v), real(v + half)):
                yield Message(
                    step,
                    real(v),
                    real(v + half),
                    bound(v + half, core, count),
                    bound(v + 2 * half, core, count),
                    Action.COPY,
                )
    for step in range(depth):
        for v in range(core):
            first = v >> step << step
            if involved(rank, real(v), real(v ^ (1 << step))):
                start, stop = bound(first, core, count), bound(first + (1 << step), core, count)
                yield Message(depth + step, real(v), real(v ^ (1 << step)), start, stop, Action.COPY)
    for v in range(core, world_size):
        if involved(rank, real(v - core), real(v)):
            yield Message(2 * depth, real(v - core), real(v), 0, count, Action.COPY)


def _core(world_size: int) -> tuple[int, int]:
    """Number of core ranks, the largest power of two, and of ranks beyond it."""
    core = 1 << (world_size.bit_length() - 1)
    return core, world_size - core


def _first(v: int, extra: int) -> int:
    """The first rank that core v stands for."""
    return 2 * v if v < extra else v + extra


def _real(v: int, extra: int) -> int:
    """The rank that acts as core v."""
    return 2 * v + 1 if v < extra else v + extra


def _block(block: int, world_size: int, count: int) -> tuple[int, int]:
    return bound(block, world_size, count), bound(block + 1, world_size, count)


def _pairs(
    step: int,
    extra: int,
    rank: int | None,
    ends: Callable[[int], tuple[int, int]],
    part: Callable[[int], tuple[int, int]],
    action: Action,
) -> Iterator[Message]:
    for v in range(extra):
        if involved(rank, *ends(v)):
            yield Message(step, *ends(v), *part(v), action)


def _members(core: int, extra: int, rank: int | None, distance: int) -> list[int]:
    """Core ranks that send something which `rank` sends or receives."""
    if rank is None:
        return list(range(core))
    if rank < 2 * extra and rank % 2 == 0:
        return []
    v = rank // 2 if rank < 2 * extra else rank - extra
    return [v, v ^ distance]


def _halve(first_round: int, core: int, extra: int, edge: Edge, rank: int | None) -> Iterator[Message]:
    """Core v keeps the half of its range that holds v and sends the other half to its partner."""
    for step in range(core.bit_length() - 1):
        distance = core >> (step + 1)
        for v in _members(core, extra, rank, distance):
            partner = v ^ distance
            low = partner & ~(distance - 1)
            yield Message(
                first_round + step,
                _real(v, extra),
                _real(partner, extra),
                edge(low),
                edge(low + distance),
                Action.REDUCE,
            )


def _double(first_round: int, core: int, extra: int, edge: Edge, rank: int | None) -> Iterator[Message]:
    """Core v sends the finished range around v to its partner; ranges double."""
    for step in range(core.bit_length() - 1):
        distance = 1 << step
        for v in _members(core, extra, rank, distance):
            low = v & ~(distance - 1)
            yield Message(
                first_round + step,
                _real(v, extra),
                _real(v ^ distance, extra),
                edge(low),
                edge(low + distance),
                Action.COPY,
            )


PLUGIN = CollectivePlugin(
    name="halving_doubling",
    summary="recursive halving, recursive doubling",
    implementation=__name__,
    exchange="all-reduce",
    topology="replicated-PS",
)
