"""Fractional packings of trees by multiplicative weights (Garg and Koenemann 1998; Chekuri and Quanrud 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.packed_trees.arborescence import Edge, cheapest_arborescence, cheapest_tree
from scaleproof.packed_trees.link_graph import LinkGraph

MOST_ROUNDS = 20_000


@dataclass(frozen=True)
class Packing:
    """Trees with the rate of each, in units of a link's rate. `edges`: what trees are made of, by number, between
    devices; (from, to) where `root` is given, else undirected. `bound`: no packing carries more."""

    graph: LinkGraph
    root: int | None
    edges: tuple[Edge, ...]
    trees: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    bound: float

    @property
    def rate(self) -> float:
        """Of all trees together."""
        return sum(self.weights)


def packed(graph: LinkGraph, root: int | None, epsilon: float = 0.1) -> Packing:
    """A packing within a share `epsilon` of the best one. `root`: arborescences from it, for a broadcast; None:
    undirected trees, for an all-reduce, which goes up and down each tree."""
    graph.check_connected()
    place = {device: number for number, device in enumerate(graph.devices)}
    capacities = graph.capacities if root is not None else {pair: float(n) for pair, n in graph.links.items()}
    edges = [pair for pair in capacities if root is None or pair[1] != root]
    numbered = [(place[one], place[other]) for one, other in edges]
    count = len(place)

    def cheapest(costs: Sequence[float]) -> list[int]:
        if root is None:
            return cheapest_tree(count, numbered, costs)
        return cheapest_arborescence(count, place[root], numbered, costs)

    trees, weights, bound = _multiplicative_weights(np.array([capacities[pair] for pair in edges]), cheapest, epsilon)
    return Packing(graph, root, tuple(edges), trees, weights, bound)


def _multiplicative_weights(
    capacities: np.ndarray, cheapest: Callable[[Sequence[float]], list[int]], epsilon: float
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...], float]:
    """Trees, their weights, and the least bound that lengths have shown: capacity times length of all edges over the
    length of the cheapest tree (duality). Lengths are rescaled in each round, since only their ratios matter, and those
    of long runs would leave the range of a float."""
    lengths, load = 1 / capacities, np.zeros(len(capacities))
    weights, bound = dict[tuple[int, ...], float](), np.inf
    for _ in range(MOST_ROUNDS):
        tree = tuple(sorted(cheapest(lengths.tolist())))
        chosen = list(tree)
        bound = min(bound, float(capacities @ lengths / lengths[chosen].sum()))
        pushed = float(capacities[chosen].min())
        weights[tree] = weights.get(tree, 0.0) + pushed
        load[chosen] += pushed / capacities[chosen]
        if sum(weights.values()) / load.max() >= (1 - epsilon) * bound:
            break
        lengths[chosen] *= 1 + epsilon * pushed / capacities[chosen]
        lengths /= lengths.max()
    overload = float(load.max())
    return tuple(weights), tuple(weight / overload for weight in weights.values()), bound
