"""Shares of the data and the places of devices in trees and chains."""

from __future__ import annotations

import pytest

from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import machine
from scaleproof.packed_trees.rings import most_rings
from scaleproof.packed_trees.tree_plan import TreePlan, chain_plans, ring_parts, tree_plans
from scaleproof.spec.cluster import load_cluster
from scaleproof.spec.errors import SpecError

FIVE = machine("dgx1v_slow[0,2,3,4,7]")


def covered(plans: list[TreePlan]) -> list[tuple[int, int]]:
    return [(plan.start, plan.stop) for plan in plans]


def test_trees_have_neighbouring_shares_in_proportion_to_their_weights() -> None:
    packing = few_trees(FIVE, 0)
    plans = tree_plans(packing, 3000)
    assert covered(plans)[0][0] == 0 and covered(plans)[-1][1] == 3000
    assert [plan.stop - plan.start for plan in plans] == [round(3000 * w / packing.rate) for w in packing.weights]
    for plan in plans:
        assert plan.root == 0
        assert set(plan.parents) == set(FIVE.devices)


def test_an_undirected_tree_gets_the_root_from_which_it_is_least_deep() -> None:
    line = TreePlan({0: 1, 1: None, 2: 1}, 0, 1)
    assert line.depth == 1
    for plan in tree_plans(few_trees(FIVE, None), 100):
        assert plan.depth <= 3


def test_chunks_cover_a_share() -> None:
    plan = TreePlan({0: None, 1: 0}, 10, 35)
    assert [(part.start, part.stop) for part in plan.chunks(10)] == [(10, 20), (20, 30), (30, 35)]


def test_a_broadcast_over_a_ring_goes_both_ways_from_the_root() -> None:
    plans = chain_plans([(0, 1, 2)], 1, 10)
    assert [plan.parents for plan in plans] == [{1: None, 2: 1, 0: 2}, {1: None, 0: 1, 2: 0}]
    assert covered(plans) == [(0, 5), (5, 10)]
    assert len(chain_plans([(0, 1, 2)], 1, 10, both=False)) == 1
    assert [part[1:] for part in ring_parts([(0, 1, 2)], 10)] == [(0, 5), (5, 10)]


def test_an_allocation_has_the_links_between_its_nodes() -> None:
    cluster = load_cluster("dgx1v_slow[0,2,3,4,7]", 5)
    direct = {link.ends: link.mbit for link in cluster.links if link.ends[1].startswith("node")}
    assert direct == {
        ("node0", "node1"): 20.0,
        ("node0", "node2"): 40.0,
        ("node0", "node3"): 40.0,
        ("node1", "node2"): 40.0,
        ("node2", "node4"): 20.0,
        ("node3", "node4"): 40.0,
    }
    assert len(most_rings(machine("dgx1v_slow[0,1,2,3,4,5]"))) == 1


@pytest.mark.parametrize(
    ("name", "nodes", "message"),
    [
        ("dgx1v_slow[0,9]", 2, "cluster dgx1v_slow has no node 9; it has 0 to 7"),
        ("dgx1v_slow[0,0]", 2, "names a node twice"),
        ("dgx1v_slow[0,1]", 3, "has 2 nodes, not 3"),
        ("dgx1x[0,1]", 2, "unknown cluster 'dgx1x'"),
    ],
)
def test_an_allocation_that_cannot_be_is_refused(name: str, nodes: int, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_cluster(name, nodes)


def test_a_tree_told_as_numbers_is_the_same_tree() -> None:
    plan = TreePlan({0: None, 1: 0, 2: 1}, 3, 9)
    assert plan.numbers == [3, 9, -1, 0, 1] and TreePlan.of_numbers([float(number) for number in plan.numbers]) == plan
