"""Few trees in place of many: an integer program over the trees of a fractional packing (blink2020)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from scaleproof.packed_trees.bounds import all_reduce_bound, broadcast_bound
from scaleproof.packed_trees.link_graph import LinkGraph
from scaleproof.packed_trees.multiplicative_weights import Packing, packed

THRESHOLD = 0.05
"""Share of the bound that whole weights may lose before finer ones are taken."""
FINEST = 6
"""Weights are multiples of 1, 1/2, ... 1/FINEST of a link."""
EPSILONS = (0.1, 0.03, 0.01)
"""Of the fractional packing: a finer one has more trees to choose from."""


def few_trees(graph: LinkGraph, root: int | None) -> Packing:
    """A packing of few trees within THRESHOLD of the bound; `root` as in `packed`. The best that was found where none
    is."""
    bound = all_reduce_bound(graph) if root is None else broadcast_bound(graph, root)
    found = list[Packing]()
    for epsilon in EPSILONS:
        found.append(fewest(packed(graph, root, epsilon), bound))
        if found[-1].rate >= (1 - THRESHOLD) * bound:
            return found[-1]
    return max(found, key=lambda each: each.rate)


def fewest(packing: Packing, bound: float) -> Packing:
    """As few trees as carry the most that weights of whole links allow; where that is below the bound by more than
    THRESHOLD, of halves of links, and so on. The packing itself where none does."""
    for parts in range(1, FINEST + 1):
        unit = 1 / parts
        most = _solved(packing, unit, None)
        rate = 0.0 if most is None else unit * float(most.sum())
        if rate >= (1 - THRESHOLD) * bound:
            counts = _solved(packing, unit, rate)
            assert counts is not None
            return _chosen(packing, unit * counts)
    return packing


def _chosen(packing: Packing, weights: np.ndarray) -> Packing:
    used = [number for number, weight in enumerate(weights) if weight > 0]
    return replace(
        packing,
        trees=tuple(packing.trees[number] for number in used),
        weights=tuple(float(weights[number]) for number in used),
    )


def _solved(packing: Packing, unit: float, rate: float | None) -> np.ndarray | None:
    """Units of each tree. `rate`: the fewest trees that carry it; None: the most that can be carried."""
    trees, edges = len(packing.trees), len(packing.edges)
    capacities = np.array([packing.graph.capacities[pair] for pair in packing.edges])
    used = csr_array(
        (
            np.full(sum(map(len, packing.trees)), unit),
            (
                [edge for tree in packing.trees for edge in tree],
                [number for number, tree in enumerate(packing.trees) for _ in tree],
            ),
        ),
        shape=(edges, trees),
    )
    most = float(capacities.max() / unit)
    if rate is None:
        result = milp(
            -np.ones(trees),
            integrality=np.ones(trees),
            bounds=Bounds(0, most),
            constraints=[LinearConstraint(used, ub=capacities)],
        )
        return None if result.x is None else np.rint(result.x)
    nothing, one = csr_array((edges, trees)), csr_array(np.eye(trees))
    constraints = [
        LinearConstraint(_beside(used, nothing), ub=capacities),
        LinearConstraint(np.concatenate([np.full(trees, unit), np.zeros(trees)]), lb=rate - unit / 2),
        LinearConstraint(_beside(one, -most * one), ub=0),
    ]
    result = milp(
        np.concatenate([np.zeros(trees), np.ones(trees)]),
        integrality=np.ones(2 * trees),
        bounds=Bounds(0, np.concatenate([np.full(trees, most), np.ones(trees)])),
        constraints=constraints,
        options={"time_limit": 10.0},
    )
    return None if result.x is None else np.rint(result.x[:trees])


def _beside(left: csr_array, right: csr_array) -> csr_array:
    from scipy.sparse import hstack

    return csr_array(hstack([left, right]))
