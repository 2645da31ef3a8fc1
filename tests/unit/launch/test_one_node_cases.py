"""Cases whose transport ends at a node stand on one node of an allocation, beside others that take all."""

from __future__ import annotations

import pytest

from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, Node
from scaleproof.launch.nodes.discovery import NodeAnswer
from scaleproof.launch.nodes.host_list import Host
from scaleproof.launch.nodes.requested_nodes import Allocation
from scaleproof.launch.obstacle import Obstacle
from scaleproof.spec.case import AnyCase
from tests.short_form import ring_case


def allocated(slots: int) -> AllocatedNodes:
    answers = {
        name: NodeAnswer(name, name, "m", [0, 1], {"lo": "127.0.0.1", "eth0": f"10.0.0.{name}"}, "eth0", "c", True)
        for name in ("1", "2", "3")
    }
    hosts = tuple(Host(name, slots) for name in answers)
    return AllocatedNodes(
        Allocation("hosts", "", hosts, "ssh"),
        tuple(Node(name, slots, "", answer) for name, answer in answers.items()),
        "eth0",
    )


def case(transport: str, ranks: int) -> AnyCase:
    return ring_case(transport, ranks)


@pytest.mark.parametrize(
    ("transport", "nodes", "interface"),
    [("shm", [(0, 1)], "lo"), ("grpc+shm", [(0, 1)], "lo"), ("tcp", [(0,), (1,)], "eth0")],
)
def test_memory_that_ends_at_the_node_has_its_ranks_on_one(transport, nodes, interface):
    placement = allocated(slots=2).placement_for(case(transport, 2))
    assert not isinstance(placement, tuple)
    assert (list(placement.ranks), placement.interface) == (nodes, interface)


def test_more_ranks_than_a_node_takes_are_not_spread():
    obstacle = allocated(slots=2).placement_for(case("shm", 3))
    assert isinstance(obstacle, Obstacle)
    assert obstacle.reason == "3 ranks on 1 nodes are 3 per node, more than the nodes have slots (1:2, 2:2, 3:2)"
    assert not isinstance(allocated(slots=2).placement_for(case("tcp", 3)), tuple)
