"""Shortest paths in the graph of a cluster. A vertex is the name of a node or a switch, an edge the number of a
link."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from scaleproof.spec.cluster import Link

if TYPE_CHECKING:
    import networkx

# A path through another node counts as this many links, so that it is chosen only if no path uses switches only.
TRANSIT_COST = 1000


def link_graph(links: Sequence[Link]) -> networkx.MultiGraph:
    """The links as edges, whose keys are their numbers."""
    import networkx  # half a second, which only builders of networks need

    graph = networkx.MultiGraph()
    for number, link in enumerate(links):
        graph.add_edge(*link.ends, key=number)
    return graph


def paths_to(goal: str, graph: networkx.MultiGraph, nodes: Collection[str]) -> dict[str, tuple[int, str]]:
    """The next link and the next vertex of each vertex from which there is a path to the goal. Paths have the fewest
    links, and pass through other nodes only if no other path exists. Of equal paths the one over the vertex with the
    smallest name is chosen, so that the result is always the same."""
    import networkx

    if goal not in graph:
        return {}

    def cost(vertex: str, other: str, links: dict[int, object]) -> int:
        return TRANSIT_COST if vertex in nodes and vertex != goal else 1

    previous, distance = networkx.dijkstra_predecessor_and_distance(graph, goal, weight=cost)
    following = {
        vertex: min(candidates, key=lambda candidate: (distance[candidate], candidate))
        for vertex, candidates in previous.items()
        if candidates
    }
    return {vertex: (min(graph[vertex][nearer]), nearer) for vertex, nearer in following.items()}


def is_tree_of_switches(switches: Collection[str], links: Sequence[Link]) -> bool:
    """Whether the links between switches form no cycle."""
    import networkx

    between = link_graph([link for link in links if set(link.ends) <= set(switches)])
    return len(between) == 0 or bool(networkx.is_forest(between))
