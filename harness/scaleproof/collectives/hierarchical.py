"""Hierarchical: rings inside the nodes, rings between the ranks with the same local rank on all nodes, rings inside.

There are `nodes` nodes of m = p/nodes neighbouring ranks each; a rank's local rank is its number on its node. Each of
the m ranks of a node sends 1/m of the bytes that a rank of a ring over nodes would send. On one node, or with one rank
per node, it is a plain ring.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

from scaleproof.collectives import ring
from scaleproof.collectives.message_schedule import Message, bound
from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import CollectivePlugin

Ring = Callable[[int, int, int | None], Iterator[Message]]
"""Generator of a ring's messages. Arguments: number of ranks, elements, and the rank whose messages to generate (None:
all)."""


class Slice(NamedTuple):
    """Elements [start, stop) of the work buffer."""

    start: int
    stop: int


Cut = Callable[[list[int], int, int], list[Slice]]
"""Maps elements [start, stop) of a group's ring to slices of the work buffer."""


def all_reduce(world_size: int, count: int, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """Reduce-scatter inside nodes; all-reduce of every local rank's share between nodes; all-gather inside nodes."""
    inside, between = _groups(world_size, nodes)
    size = len(between)

    def share(group: list[int]) -> int:
        return bound(group[0] + 1, size, count) - bound(group[0], size, count)

    def cut_share(group: list[int], start: int, stop: int) -> list[Slice]:
        first = bound(group[0], size, count)
        return [Slice(first + start, first + stop)]

    yield from _rings(0, inside, ring.reduce_scatter, lambda _: count, _unchanged, rank)
    yield from _rings(size - 1, between, ring.all_reduce, share, cut_share, rank)
    yield from _rings(size - 1 + 2 * (nodes - 1), inside, ring.all_gather, lambda _: count, _unchanged, rank)


def reduce_scatter(world_size: int, count: int, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """Inside a node every local rank gets the node's sum of its local rank's blocks on all nodes; then between nodes
    every rank gets the sum of its own block."""
    inside, between = _groups(world_size, nodes)
    of_local_rank, of_rank = _block_cuts(world_size, nodes, count)
    yield from _rings(0, inside, ring.reduce_scatter, len, of_local_rank, rank)
    yield from _rings(len(between) - 1, between, ring.reduce_scatter, len, of_rank, rank)


def all_gather(world_size: int, count: int, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """Between nodes every rank gets the blocks of its local rank on all nodes; inside nodes it gets those of all local
    ranks."""
    inside, between = _groups(world_size, nodes)
    of_local_rank, of_rank = _block_cuts(world_size, nodes, count)
    yield from _rings(0, between, ring.all_gather, len, of_rank, rank)
    yield from _rings(nodes - 1, inside, ring.all_gather, len, of_local_rank, rank)


def broadcast(world_size: int, count: int, root: int = 0, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """From the root to the ranks with its local rank on all nodes, then inside every node."""
    inside, between = _groups(world_size, nodes)
    node, local_rank = divmod(root, len(between))

    def chain(start: int) -> Ring:
        return lambda ranks, elements, own: ring.broadcast(ranks, elements, start, own)

    yield from _rings(0, [between[local_rank]], chain(node), lambda _: count, _unchanged, rank)
    yield from _rings(2 * (nodes - 1), inside, chain(local_rank), lambda _: count, _unchanged, rank)


def _groups(world_size: int, nodes: int) -> tuple[list[list[int]], list[list[int]]]:
    """The ranks of every node, and the ranks of every local rank."""
    if world_size % nodes:
        raise ValueError(f"{world_size} ranks do not fill {nodes} nodes evenly")
    size = world_size // nodes
    inside = [list(range(first, first + size)) for first in range(0, world_size, size)]
    between = [list(range(local_rank, world_size, size)) for local_rank in range(size)]
    return inside, between


def _rings(
    first_round: int,
    groups: list[list[int]],
    generator: Ring,
    elements: Callable[[list[int]], int],
    cut: Cut,
    rank: int | None,
) -> Iterator[Message]:
    """A ring of `elements(group)` elements in each group, all at the same time, from `first_round` on."""

    def ring_of(group: list[int]) -> Iterator[Message]:
        own = group.index(rank) if rank in group else None
        if rank is not None and own is None:
            return
        for message in generator(len(group), elements(group), own):
            source, destination = group[message.source], group[message.destination]
            for part in cut(group, message.start, message.stop):
                yield Message(first_round + message.round, source, destination, part.start, part.stop, message.action)

    return heapq.merge(*map(ring_of, groups), key=lambda message: message.round)


def _unchanged(group: list[int], start: int, stop: int) -> list[Slice]:
    return [Slice(start, stop)]


def _block_cuts(world_size: int, nodes: int, count: int) -> tuple[Cut, Cut]:
    """The maps of rings with one element per local rank (a block on every node), and with one element per rank."""
    size = world_size // nodes

    def block(owner: int) -> Slice:
        return Slice(bound(owner, world_size, count), bound(owner + 1, world_size, count))

    def of_local_rank(group: list[int], local_rank: int, _: int) -> list[Slice]:
        return [block(node * size + local_rank) for node in range(nodes)]

    def of_rank(group: list[int], index: int, _: int) -> list[Slice]:
        return [block(group[index])]

    return of_local_rank, of_rank


def check(case: CommonCase) -> None:
    """Raises FieldError unless there are several nodes with the same number of ranks, at least two."""
    if case.nodes in (1, case.ranks) or case.ranks % case.nodes:
        requirement = "is for several nodes with as many ranks on each, at least two"
        message = f"'hierarchical' {requirement}, not for {case.ranks} ranks on {case.nodes}; set nodes, or use 'ring'"
        raise FieldError("collective", message)


PLUGIN = CollectivePlugin(
    name="hierarchical",
    summary="rings inside nodes and between them",
    implementation=__name__,
    exchange="all-reduce",
    topology="closed-ring",
    knows_nodes=True,
    check=check,
)
