"""Cases whose transport ends at a node stand on one node of an allocation, beside others that take all."""

from __future__ import annotations

import pytest

from scaleproof.launch.nodes.allocated_nodes import Ground, Node
from scaleproof.launch.nodes.allocation import Allocation
from scaleproof.launch.nodes.discovery import Answer
from scaleproof.launch.nodes.host_list import Host
from scaleproof.spec.case import AnyCase, parse_case


def ground(slots: int) -> Ground:
    answers = {
        name: Answer(name, name, "m", [0, 1], {"lo": "127.0.0.1", "eth0": f"10.0.0.{name}"}, "eth0", "c", True)
        for name in ("1", "2", "3")
    }
    hosts = tuple(Host(name, slots) for name in answers)
    return Ground(
        Allocation("hosts", "", hosts, "ssh"),
        tuple(Node(name, slots, "", answer) for name, answer in answers.items()),
        "eth0",
    )


def case(transport: str, ranks: int) -> AnyCase:
    return parse_case(
        {
            "suite": "tests",
            "experiment": "ground",
            "arm": transport,
            "program": "collective",
            "operation": "all_reduce",
            "sizes": [8],
            "ranks": ranks,
            "transport": transport,
            "collective": "ring",
        }
    )


@pytest.mark.parametrize(
    ("transport", "nodes", "interface"),
    [("shm", [(0, 1)], "lo"), ("grpc+shm", [(0, 1)], "lo"), ("tcp", [(0,), (1,)], "eth0")],
)
def test_memory_that_ends_at_the_node_has_its_ranks_on_one(transport, nodes, interface):
    site = ground(slots=2).site(case(transport, 2))
    assert not isinstance(site, tuple)
    assert (list(site.ranks), site.interface) == (nodes, interface)


def test_more_ranks_than_a_node_takes_are_not_spread():
    why, advice = ground(slots=2).site(case("shm", 3))
    assert why.startswith("3 ranks are 3 a node on 1 nodes, more than slots there are (1:2, 2:2, 3:2)")
    assert not isinstance(ground(slots=2).site(case("tcp", 3)), tuple)
