"""Routes of clusters: those of Dijkstra's algorithm over the whole graph, with the same choice among equal ones."""

from __future__ import annotations

from itertools import permutations

import networkx
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.fabric.shortest_paths import TRANSIT_COST, ShortestPaths, link_graph
from scaleproof.spec.cluster import Link, node_name


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[str], list[Link]]:
    """Names of nodes, and links between them and some switches: also parallel ones, and parts that are not joined."""
    nodes = [node_name(number) for number in range(draw(st.integers(2, 6)))]
    places = [*nodes, *(f"s{number}" for number in range(draw(st.integers(0, 5))))]
    pairs = list(permutations(places, 2))
    ends = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=14))
    return nodes, [Link(pair, 1000.0, 0.0) for pair in ends]


@settings(max_examples=400, deadline=None)
@given(clusters())
def test_paths_are_those_of_a_search_over_the_whole_graph(cluster: tuple[list[str], list[Link]]) -> None:
    nodes, links = cluster
    paths, graph = ShortestPaths(links, nodes), link_graph(links)
    for goal in nodes:
        assert paths.paths_to(goal) == plain(goal, graph, nodes)


def plain(goal: str, graph: networkx.MultiGraph, nodes: list[str]) -> dict[str, tuple[int, str]]:
    """From each vertex the link and the vertex that come next: the fewest links, nodes only if there is no other way,
    of equal ways the one over the smallest name."""
    if goal not in graph:
        return {}

    def cost(vertex: str, other: str, between: dict[int, object]) -> int:
        return TRANSIT_COST if vertex in nodes and vertex != goal else 1

    previous, distance = networkx.dijkstra_predecessor_and_distance(graph, goal, weight=cost)
    following = {
        vertex: min(candidates, key=lambda candidate: (distance[candidate], candidate))
        for vertex, candidates in previous.items()
        if candidates
    }
    return {vertex: (min(graph[vertex][nearer]), nearer) for vertex, nearer in following.items()}
