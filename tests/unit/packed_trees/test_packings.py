"""Packings of trees and rings on the links of DGX-1 machines: rates, bounds, and allocations."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.packed_trees.arborescence import cheapest_arborescence, cheapest_tree
from scaleproof.packed_trees.bounds import all_reduce_bound, best_root, partitions
from scaleproof.packed_trees.fewest_trees import few_trees, fewest
from scaleproof.packed_trees.link_graph import LinkGraph, allocations, machine
from scaleproof.packed_trees.multiplicative_weights import Packing, packed
from scaleproof.packed_trees.rings import all_reduce_rate, broadcast_rate, most_rings
from scaleproof.spec.errors import SpecError

DGX_1P, DGX_1V = machine("dgx1p_like"), machine("dgx1v_like")
# Devices, then rates in links: broadcast over trees and rings, all-reduce over trees and rings (an enumeration of our
# own before this project, not published; rounded to two digits).
DGX_1V_RATES = [
    "0,1,2 2 2 2.00 1.50",
    "0,1,4 1 0 1.00 0.00",
    "0,2,3 3 2 2.50 1.50",
    "0,2,6 1 0 1.00 0.00",
    "0,3,4 2 0 2.00 0.00",
    "0,1,2,3 4 4 3.00 2.67",
    "0,1,2,4 2 0 2.00 0.00",
    "0,1,2,5 2 0 2.00 0.00",
    "0,1,2,6 1 0 1.00 0.00",
    "0,1,4,5 2 2 2.00 1.33",
    "0,1,4,6 1 0 1.00 0.00",
    "0,1,4,7 1 0 1.00 0.00",
    "0,2,3,4 2 0 2.00 0.00",
    "0,2,3,6 1 0 1.00 0.00",
    "0,2,3,7 1 0 1.00 0.00",
    "0,2,4,6 2 2 1.50 1.33",
    "0,2,5,6 1 0 1.00 0.00",
    "0,3,4,7 3 2 2.33 1.33",
    "0,3,6,7 1 0 1.00 0.00",
    "0,1,2,3,4 2 0 2.00 0.00",
    "0,1,2,3,6 1 0 1.00 0.00",
    "0,1,2,4,5 3 2 2.25 1.25",
    "0,1,2,4,6 2 2 2.00 1.25",
    "0,1,2,4,7 2 0 2.00 0.00",
    "0,1,2,5,6 2 2 2.00 1.25",
    "0,1,2,5,7 1 0 1.00 0.00",
    "0,1,2,6,7 1 0 1.00 0.00",
    "0,1,4,6,7 1 0 1.00 0.00",
    "0,2,3,4,6 2 2 2.00 1.25",
    "0,2,3,4,7 3 2 2.50 1.25",
    "0,2,3,5,6 1 0 1.00 0.00",
    "0,2,3,5,7 1 0 1.00 0.00",
    "0,2,3,6,7 2 2 2.00 1.25",
    "0,1,2,3,4,5 3 2 2.50 1.20",
    "0,1,2,3,4,6 2 2 2.00 1.20",
    "0,1,2,3,4,7 3 2 2.50 1.20",
    "0,1,2,3,6,7 2 2 2.00 1.20",
    "0,1,2,4,5,6 4 4 2.60 2.40",
    "0,1,2,4,5,7 3 2 2.40 1.20",
    "0,1,2,4,6,7 3 2 2.33 1.20",
    "0,1,2,5,6,7 2 2 2.00 1.20",
    "0,2,3,4,6,7 4 4 2.80 2.40",
    "0,2,3,5,6,7 2 2 2.00 1.20",
    "0,1,2,3,4,5,6 4 4 3.00 2.33",
    "0,1,2,3,4,6,7 4 4 3.00 2.33",
    "0,1,2,3,4,5,6,7 6 6 3.43 3.43",
]


def row(text: str) -> tuple[LinkGraph, list[float]]:
    devices, *rates = text.split()
    return DGX_1V.of(map(int, devices.split(","))), list(map(float, rates))


def check_packing(packing: Packing) -> None:
    """Every tree spans all devices, and no direction of a link carries more than it can."""
    load = np.zeros(len(packing.edges))
    for tree, weight in zip(packing.trees, packing.weights, strict=True):
        made = nx.DiGraph() if packing.root is not None else nx.Graph()
        made.add_edges_from(packing.edges[number] for number in tree)
        assert len(tree) == len(packing.graph.devices) - 1
        assert set(made.nodes) == set(packing.graph.devices)
        assert nx.is_arborescence(made) if packing.root is not None else nx.is_tree(made)
        load[list(tree)] += weight
    capacities = np.array([packing.graph.capacities[pair] for pair in packing.edges])
    assert (load <= capacities * (1 + 1e-9)).all()


def test_machines_have_as_many_kinds_of_allocations_as_published() -> None:
    assert len(list(allocations(DGX_1V))) == 46
    assert len(list(allocations(DGX_1P))) == 14


def test_rates_of_all_allocations_are_those_enumerated_before() -> None:
    assert len(DGX_1V_RATES) == 46
    for text in DGX_1V_RATES:
        graph, (broadcast, broadcast_rings, all_reduce, all_reduce_rings) = row(text)
        rings = len(most_rings(graph))
        assert best_root(graph)[1] == broadcast, text
        assert broadcast_rate(rings) == broadcast_rings, text
        assert all_reduce_bound(graph) == pytest.approx(all_reduce, abs=0.005), text
        assert all_reduce_rate(rings, len(graph.devices)) == pytest.approx(all_reduce_rings, abs=0.005), text


def test_no_nvlink_ring_in_21_allocations() -> None:
    assert sum(not most_rings(row(text)[0]) for text in DGX_1V_RATES) == 21


@pytest.mark.parametrize("whole", [DGX_1P, DGX_1V], ids=lambda each: each.name)
def test_few_trees_carry_nearly_the_bound_on_every_allocation(whole: LinkGraph) -> None:
    for graph in allocations(whole):
        root, bound = best_root(graph)
        for start, most in ((root, bound), (None, all_reduce_bound(graph))):
            packing = packed(graph, start)
            check_packing(packing)
            assert packing.rate >= 0.9 * most - 1e-9, graph.name
            few = few_trees(graph, start)
            check_packing(few)
            assert few.rate >= 0.95 * most, graph.name
            assert len(few.trees) <= (9 if start is None else 8), graph.name


def test_the_whole_machine_needs_six_trees_at_most_for_a_broadcast() -> None:
    packing = packed(DGX_1V, 0, 0.1)
    assert packing.rate >= 0.9 * 6
    assert packing.bound >= 6 - 1e-9, "no bound is below what can be carried"
    few = fewest(packing, 6.0)
    assert few.rate == 6.0
    assert len(few.trees) <= 6
    assert len(packing.trees) > 20, "the program has many to choose from"


@pytest.mark.parametrize("epsilon", [0.3, 0.1, 0.03])
def test_a_finer_epsilon_comes_nearer_to_the_optimum(epsilon: float) -> None:
    assert packed(DGX_1V, 0, epsilon).rate >= (1 - epsilon) * 6 - 1e-9


edges_of_five = [(one, to) for one in range(5) for to in range(5) if one != to]


@given(st.lists(st.integers(0, 50), min_size=20, max_size=20))
def test_the_cheapest_arborescence_is_that_of_networkx(costs: list[int]) -> None:
    graph = nx.DiGraph()
    for (one, to), cost in zip(edges_of_five, costs, strict=True):
        if to != 0:
            graph.add_edge(one, to, weight=cost)
    wanted = nx.minimum_spanning_arborescence(graph).size("weight")
    edges = [edge for edge in edges_of_five if edge[1] != 0]
    prices = [float(cost) for edge, cost in zip(edges_of_five, costs, strict=True) if edge[1] != 0]
    found = cheapest_arborescence(5, 0, edges, prices)
    tree = nx.DiGraph([edges[number] for number in found])
    assert nx.is_arborescence(tree)
    assert sum(prices[number] for number in found) == wanted


@given(st.lists(st.integers(0, 50), min_size=10, max_size=10))
def test_the_cheapest_tree_is_that_of_networkx(costs: list[int]) -> None:
    edges = list(combinations(range(5), 2))
    graph = nx.Graph()
    graph.add_weighted_edges_from((one, other, cost) for (one, other), cost in zip(edges, costs, strict=True))
    found = cheapest_tree(5, edges, list(map(float, costs)))
    assert sum(costs[number] for number in found) == nx.minimum_spanning_tree(graph).size("weight")


def test_partitions_are_as_many_as_bell_says() -> None:
    assert [len(partitions(count)) for count in range(1, 9)] == [1, 2, 5, 15, 52, 203, 877, 4140]


def test_rings_share_no_link() -> None:
    rings = most_rings(DGX_1V)
    assert len(rings) == 3
    used: dict[tuple[int, int], int] = {}
    for ring in rings:
        for one, other in zip(ring, (*ring[1:], ring[0]), strict=True):
            pair = (min(one, other), max(one, other))
            used[pair] = used.get(pair, 0) + 1
    assert all(count <= DGX_1V.links[pair] for pair, count in used.items())


def test_an_allocation_without_links_is_refused() -> None:
    with pytest.raises(SpecError, match="no links lead to 0; leave these out"):
        packed(DGX_1V.of([0, 5, 6, 7]), 5)
    with pytest.raises(SpecError, match="dgx1v_like has no device 9; it has 0 to 7"):
        DGX_1V.of([0, 9])
