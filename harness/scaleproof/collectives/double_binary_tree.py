"""Two binary trees, each for one half of the array, in which every rank is an inner node of at most one (Sanders, Speck
and Träff 2009; NCCL's construction). Pieces are reduced up and come down one behind the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from scaleproof.collectives.message_schedule import Action, Message, bound, involved
from scaleproof.collectives.ring import all_gather, reduce_scatter
from scaleproof.collectives.tree import broadcast
from scaleproof.spec.plugins import CollectivePlugin

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]
"""The others are those of the ring, and of the binomial tree."""
PIECES = 4
"""Of each half."""


class Edge(NamedTuple):
    """From a child to its parent. `depth`: of the child, 1 below the root; `turn`: its number among its siblings."""

    child: int
    parent: int
    depth: int
    turn: int


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Siblings take turns, so that a level takes two rounds: a piece goes up a level, then down a level, every two
    rounds, and the next piece follows two rounds behind."""
    rounds: dict[int, list[Message]] = {}
    for half, edges in enumerate(trees(world_size)):
        deepest = max((edge.depth for edge in edges), default=0)
        for child, parent, depth, turn in edges:
            if not involved(rank, child, parent):
                continue
            for piece in range(PIECES):
                part = half * PIECES + piece
                start, stop = bound(part, 2 * PIECES, count), bound(part + 1, 2 * PIECES, count)
                up, down = 2 * (piece + deepest - depth) + turn, 2 * (piece + deepest + depth - 1) + turn
                rounds.setdefault(up, []).append(Message(up, child, parent, start, stop, Action.REDUCE))
                rounds.setdefault(down, []).append(Message(down, parent, child, start, stop, Action.COPY))
    for number in sorted(rounds):
        yield from rounds[number]


@lru_cache(maxsize=64)
def trees(world_size: int) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
    """The edges of both trees. The second is the first with ranks mirrored, or shifted by one where their number is
    odd."""
    parents = {rank: parent_of(rank, world_size) for rank in range(1, world_size)}
    if world_size % 2:
        names: Sequence[int] = [(rank + 1) % world_size for rank in range(world_size)]
    else:
        names = range(world_size - 1, -1, -1)
    return _edges(parents, range(world_size)), _edges(parents, names)


def parent_of(rank: int, world_size: int) -> int:
    """Of a rank above 0 in the first tree, whose leaves are the odd ranks: the lowest set bit moves up by one, or is
    left out where that rank does not exist."""
    lowest = rank & -rank
    above = (rank ^ lowest) | lowest << 1
    return above if above < world_size else rank ^ lowest


def _edges(parents: Mapping[int, int], names: Sequence[int]) -> tuple[Edge, ...]:
    siblings: dict[int, int] = {}
    edges = []
    for child, parent in parents.items():
        turn = siblings.get(parent, 0)
        siblings[parent] = turn + 1
        edges.append(Edge(names[child], names[parent], _depth(parents, child), turn))
    return tuple(edges)


def _depth(parents: Mapping[int, int], rank: int) -> int:
    depth = 0
    while rank:
        rank, depth = parents[rank], depth + 1
    return depth


PLUGIN = CollectivePlugin(
    name="double_binary_tree",
    summary="two binary trees, each for one half of the array",
    implementation=__name__,
    exchange="all-reduce",
    topology="tree",
)
