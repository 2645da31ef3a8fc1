"""Which tree carries which part of the data, and what each device does in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from scaleproof.packed_trees.multiplicative_weights import Packing
from scaleproof.packed_trees.rings import Ring

Parents = dict[int, int | None]
"""What is above each device of a tree; None for its root."""
NOBODY = -1
"""In numbers of a tree, the parent of its root."""


@dataclass(frozen=True)
class TreePlan:
    """One tree. `parents`: by device, None for the root; `start`, `stop`: its elements of the array."""

    parents: Parents
    start: int
    stop: int

    @classmethod
    def of_numbers(cls, numbers: Sequence[float]) -> TreePlan:
        """The tree with these `numbers`."""
        start, stop, *parents = map(int, numbers)
        return cls({device: None if parent == NOBODY else parent for device, parent in enumerate(parents)}, start, stop)

    @property
    def numbers(self) -> list[int]:
        """First and last element, and the parent of each device, for a message; NOBODY for the root."""
        parents = [self.parents[device] for device in range(len(self.parents))]
        return [self.start, self.stop, *(NOBODY if parent is None else parent for parent in parents)]

    @property
    def root(self) -> int:
        """Where a broadcast begins and a reduction ends."""
        return next(device for device, parent in self.parents.items() if parent is None)

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """Of each device."""
        found: dict[int, list[int]] = {device: [] for device in self.parents}
        for device, parent in self.parents.items():
            if parent is not None:
                found[parent].append(device)
        return found

    def chunks(self, elements: int) -> Iterator[slice]:
        """Pieces of so many elements at most."""
        for begin in range(self.start, self.stop, elements):
            yield slice(begin, min(begin + elements, self.stop))

    @property
    def depth(self) -> int:
        """Links from the root to the device that is furthest from it."""
        return max(self._above(device) for device in self.parents)

    def _above(self, device: int) -> int:
        parent = self.parents[device]
        return 0 if parent is None else 1 + self._above(parent)


def tree_plans(packing: Packing, elements: int) -> list[TreePlan]:
    """The array divided over the trees in proportion to their weights. Undirected trees get the root from which they
    are least deep."""
    parts = parts_of(packing.weights, elements)
    return [
        TreePlan(_parents(packing, tree), start, stop)
        for tree, (start, stop) in zip(packing.trees, parts, strict=True)
        if stop > start
    ]


def _parents(packing: Packing, tree: Sequence[int]) -> Parents:
    graph = nx.Graph(packing.edges[number] for number in tree)
    return parents_from(graph, packing.root)


def parents_from(graph: nx.Graph, root: int | None) -> Parents:
    """Shortest ways from a root; None: from the device from which a tree is least deep."""
    first = min(nx.center(graph)) if root is None else root
    above: Parents = {first: None}
    above.update({device: parent for parent, device in nx.bfs_edges(graph, first)})
    return above


def chain_plans(rings: Sequence[Ring], root: int, elements: int, both: bool = True) -> list[TreePlan]:
    """A broadcast over rings: each in `both` directions or one, from the root to the device before it."""
    chains = [chain for ring in rings for chain in _chains(ring, root, both)]
    parts = parts_of([1.0] * len(chains), elements)
    return [
        TreePlan({device: chain[place - 1] if place else None for place, device in enumerate(chain)}, start, stop)
        for chain, (start, stop) in zip(chains, parts, strict=True)
        if stop > start
    ]


def _chains(ring: Ring, root: int, both: bool) -> Iterator[Ring]:
    place = ring.index(root)
    turned = ring[place:] + ring[:place]
    yield turned
    if both:
        yield (turned[0], *reversed(turned[1:]))


def ring_parts(rings: Sequence[Ring], elements: int, both: bool = True) -> list[tuple[Ring, int, int]]:
    """An all-reduce over rings: each in `both` directions or one, with its part of the array."""
    ways = [way for ring in rings for way in ((ring, tuple(reversed(ring))) if both else (ring,))]
    return [
        (ring, start, stop) for ring, (start, stop) in zip(ways, parts_of([1.0] * len(ways), elements), strict=True)
    ]


def parts_of(weights: Sequence[float], elements: int) -> list[tuple[int, int]]:
    """Neighbouring parts in proportion to weights."""
    total, before, edges = sum(weights), 0.0, [0]
    for weight in weights:
        before += weight
        edges.append(round(elements * before / total))
    return list(zip(edges, edges[1:], strict=False))
