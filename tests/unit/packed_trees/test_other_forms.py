"""Trees beside PCI Express, behind a switch and over several servers."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import machine
from scaleproof.packed_trees.other_forms import beside_links, double_binary_trees, one_hop_trees, three_phases
from scaleproof.packed_trees.tree_plan import TreePlan
from scaleproof.spec.errors import SpecError

PATH = machine("dgx1v_slow[0,1,4,6]")
"""Its links are 1 - 0 - 4 - 6, numbered 1 - 0 - 2 - 3; those of its pairs without one are a path too."""
SERVERS = machine("two_servers_slow")


def check_whole(plans: list[TreePlan], devices: int, elements: int) -> None:
    """Each plan is a tree over all devices, and the parts follow each other through the array."""
    for plan in plans:
        tree = nx.DiGraph((above, device) for device, above in plan.parents.items() if above is not None)
        assert nx.is_arborescence(tree) and set(tree) == set(range(devices))
    assert plans[0].start == 0 and plans[-1].stop == elements
    assert all(one.stop == other.start for one, other in pairwise(plans))


def test_a_share_of_the_array_goes_between_devices_that_no_link_connects() -> None:
    plans = beside_links(few_trees(PATH, 0), 1000, 13)
    check_whole(plans, 4, 1000)
    assert plans[-1].stop - plans[-1].start == 130
    used = {frozenset(pair) for pair in plans[-1].parents.items() if pair[1] is not None}
    assert used == {frozenset((0, 3)), frozenset((3, 1)), frozenset((1, 2))}
    assert all(plan.root == 0 for plan in plans)


def test_without_a_share_there_are_the_links_alone() -> None:
    packing = few_trees(PATH, None)
    assert len(beside_links(packing, 1000, 0)) == len(packing.trees)
    assert [plan.start for plan in beside_links(packing, 1000, 100)] == [0], "all of it over PCI Express"


def test_devices_with_a_link_to_all_others_are_refused() -> None:
    with pytest.raises(SpecError, match="no tree over PCI Express reaches them; choose devices of both processors"):
        beside_links(few_trees(machine("dgx1v_slow[0,1,2,3]"), 0), 1000, 13)


@given(devices=st.integers(2, 40), elements=st.integers(1, 1000))
def test_behind_a_switch_trees_cover_all_devices_and_the_array(devices: int, elements: int) -> None:
    hops, doubled = one_hop_trees(devices, elements), double_binary_trees(devices, elements)
    check_whole(hops, devices, elements)
    check_whole(doubled, devices, elements)
    assert len({plan.root for plan in hops}) == len(hops) == min(devices, elements)
    assert {plan.depth for plan in hops} == {1}
    assert max(plan.depth for plan in doubled) <= (devices - 1).bit_length()
    assert max(len(below) for plan in doubled for below in plan.children.values()) <= 2


@given(half=st.integers(1, 20))
def test_a_device_passes_messages_on_in_one_of_two_binary_trees(half: int) -> None:
    first, second = double_binary_trees(2 * half, 100)
    inner = [{device for device, below in plan.children.items() if below} for plan in (first, second)]
    assert not inner[0] & inner[1]


def test_over_servers_a_part_crosses_the_network_once_in_each_direction() -> None:
    plans = three_phases(SERVERS, 1200)
    check_whole(plans, 8, 1200)
    server = [0, 0, 0, 1, 1, 1, 1, 1]
    sent = [0, 0]
    for plan in plans:
        crossing = [pair for pair in plan.parents.items() if pair[1] is not None and server[pair[0]] != server[pair[1]]]
        assert len(crossing) == 1, "between the roots of the servers' trees alone"
        sent[server[plan.root]] += plan.stop - plan.start
    assert sent == [600, 600], "each server has the sum of a half"


def test_a_server_with_one_device_has_no_trees_of_its_own() -> None:
    check_whole(three_phases(SERVERS.of([0, 1, 2, 3]), 90), 4, 90)


def test_a_single_server_is_refused() -> None:
    with pytest.raises(SpecError, match="it is one server; three phases need two"):
        three_phases(PATH, 100)
