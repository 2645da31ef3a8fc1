"""Hierarchical: rings inside the nodes, rings between equal places of all nodes on the share of that place, rings
inside. The m ranks of a node together send to other nodes what one rank of a ring over nodes would, and each of them an
m-th of it.

`nodes` nodes of m = p/nodes neighbouring ranks each; on one node, or with one rank on each, it is a plain ring."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from scaleproof.collectives import ring
from scaleproof.collectives.message_schedule import Message, bound

Ring = Callable[[int, int, int | None], Iterator[Message]]
"""Ranks, elements, and the rank whose messages are wanted."""
Part = tuple[int, int]


def all_reduce(world_size: int, count: int, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """Reduce-scatter inside; all-reduce of every place's share between; all-gather inside."""
    inside, between = _groups(world_size, nodes)
    size = len(between)

    def share(group: list[int]) -> int:
        return bound(group[0] + 1, size, count) - bound(group[0], size, count)

    def placed(group: list[int], start: int, stop: int) -> list[Part]:
        first = bound(group[0], size, count)
        return [(first + start, first + stop)]

    yield from _rings(0, inside, ring.reduce_scatter, lambda _: count, _as_it_is, rank)
    yield from _rings(size - 1, between, ring.all_reduce, share, placed, rank)
    yield from _rings(size - 1 + 2 * (nodes - 1), inside, ring.all_gather, lambda _: count, _as_it_is, rank)


def reduce_scatter(world_size: int, count: int, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """Inside a node every place gets the node's sum of its blocks for all nodes; between, each rank that of its own."""
    inside, between = _groups(world_size, nodes)
    of_place, of_rank = _blocks(world_size, nodes, count)
    yield from _rings(0, inside, ring.reduce_scatter, len, of_place, rank)
    yield from _rings(len(between) - 1, between, ring.reduce_scatter, len, of_rank, rank)


def all_gather(world_size: int, count: int, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """Between nodes every rank gets the blocks of its place; inside, those of all places."""
    inside, between = _groups(world_size, nodes)
    of_place, of_rank = _blocks(world_size, nodes, count)
    yield from _rings(0, between, ring.all_gather, len, of_rank, rank)
    yield from _rings(nodes - 1, inside, ring.all_gather, len, of_place, rank)


def broadcast(world_size: int, count: int, root: int = 0, rank: int | None = None, nodes: int = 1) -> Iterator[Message]:
    """From the root to its place on every node, from there through the node."""
    inside, between = _groups(world_size, nodes)
    node, place = divmod(root, len(between))

    def chain(start: int) -> Ring:
        return lambda ranks, elements, own: ring.broadcast(ranks, elements, start, own)

    yield from _rings(0, [between[place]], chain(node), lambda _: count, _as_it_is, rank)
    yield from _rings(2 * (nodes - 1), inside, chain(place), lambda _: count, _as_it_is, rank)


def _groups(world_size: int, nodes: int) -> tuple[list[list[int]], list[list[int]]]:
    """Ranks of every node, and of every place."""
    if world_size % nodes:
        raise ValueError(f"{world_size} ranks do not fill {nodes} nodes alike")
    size = world_size // nodes
    return [list(range(first, first + size)) for first in range(0, world_size, size)], [
        list(range(place, world_size, size)) for place in range(size)
    ]


def _rings(
    first: int,
    groups: list[list[int]],
    generator: Ring,
    elements: Callable[[list[int]], int],
    cut: Callable[[list[int], int, int], list[Part]],
    rank: int | None,
) -> Iterator[Message]:
    """A ring in each group, all at once from round `first` on. `cut`: where in the array lies what a message of it
    carries."""

    def one(group: list[int]) -> Iterator[Message]:
        own = group.index(rank) if rank in group else None
        if rank is not None and own is None:
            return
        for message in generator(len(group), elements(group), own):
            for start, stop in cut(group, message.start, message.stop):
                yield Message(
                    first + message.round,
                    group[message.source],
                    group[message.destination],
                    start,
                    stop,
                    message.action,
                )

    return heapq.merge(*map(one, groups), key=lambda message: message.round)


def _as_it_is(group: list[int], start: int, stop: int) -> list[Part]:
    return [(start, stop)]


def _blocks(
    world_size: int, nodes: int, count: int
) -> tuple[Callable[[list[int], int, int], list[Part]], Callable[[list[int], int, int], list[Part]]]:
    """Where the blocks of rings lie whose elements are places of a node (a place has a block for every node), and ranks
    of a place."""
    size = world_size // nodes

    def block(owner: int) -> Part:
        return bound(owner, world_size, count), bound(owner + 1, world_size, count)

    return (
        lambda group, place, _: [block(node * size + place) for node in range(nodes)],
        lambda group, number, _: [block(group[number])],
    )
