"""Shortest paths in the graph of a cluster. A vertex is the name of a node or a switch, an edge the number of a
link."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.spec.cluster import Link

if TYPE_CHECKING:
    import networkx

# A path through another node counts as this many links, so that it is chosen only if no path uses switches only.
TRANSIT_COST = 1000


class ShortestPaths:
    """Paths over links. They have the fewest links, and pass through other nodes only if no other path exists. Of equal
    paths the one over the vertex with the smallest name is chosen, so that the result is always the same. Distances are
    computed when a path is asked for: from all nodes with links to the same switches together, as far as paths pass
    through switches only."""

    def __init__(self, links: Sequence[Link], nodes: Collection[str]) -> None:
        self._nodes, self._links = frozenset(nodes), dict[str, dict[str, int]]()
        for number, link in enumerate(links):
            for one, other in (link.ends, link.ends[::-1]):
                self._links.setdefault(one, {}).setdefault(other, number)
        self._switches = {
            vertex: tuple(other for other in near if other not in self._nodes) for vertex, near in self._links.items()
        }
        self._hops: dict[tuple[str, ...], dict[str, int]] = {}
        self._costs: dict[str, np.ndarray] = {}

    def step(self, vertex: str, goal: str) -> tuple[int, str] | None:
        """The next link and the next vertex on the path from a vertex to another; None: there is no path."""
        near = self._links.get(vertex, {})
        following = goal if goal in near else self._following(vertex, goal)
        return None if following is None else (near[following], following)

    def paths_to(self, goal: str) -> dict[str, tuple[int, str]]:
        """The next link and the next vertex of each vertex from which there is a path to the goal."""
        steps = ((vertex, self.step(vertex, goal)) for vertex in self._links if vertex != goal)
        return {vertex: step for vertex, step in steps if step is not None}

    def _following(self, vertex: str, goal: str) -> str | None:
        """The next vertex, where that is not the goal."""
        if vertex not in self._links or goal not in self._links:
            return None
        hops = self._hops_to(self._switches[goal])
        hop, nearest = min(
            ((hops[other], other) for other in self._switches[vertex] if other in hops), default=(TRANSIT_COST, None)
        )
        return nearest if hop < TRANSIT_COST else self._through_nodes(vertex, goal)

    def _hops_to(self, last: tuple[str, ...]) -> dict[str, int]:
        """Links from each switch to a vertex that has links to the switches `last`, through switches only."""
        if last not in self._hops:
            hops, front = dict.fromkeys(last, 1), list(last)
            for vertex in front:
                for other in self._switches[vertex]:
                    if other not in hops:
                        hops[other] = hops[vertex] + 1
                        front.append(other)
            self._hops[last] = hops
        return self._hops[last]

    def _through_nodes(self, vertex: str, goal: str) -> str | None:
        """The next vertex, by the cost of the way from each vertex to the goal."""
        from scipy.sparse.csgraph import dijkstra  # a third of a second, which few clusters need

        place, matrix = self._matrix
        if goal not in self._costs:
            self._costs[goal] = dijkstra(matrix, indices=place[goal])
        cost, here = self._costs[goal], place[vertex]
        if np.isinf(cost[here]):
            return None
        near = ((float(cost[place[other]]), other) for other in self._links[vertex])
        return min(each for each in near if each[0] + self._passing(each[1]) == cost[here])[1]

    def _passing(self, vertex: str) -> int:
        return TRANSIT_COST if vertex in self._nodes else 1

    @cached_property
    def _matrix(self) -> tuple[dict[str, int], object]:
        """The place of each vertex, and what each step costs, backwards: of the vertex that is nearer to the goal."""
        from scipy.sparse import csr_matrix

        place = {vertex: number for number, vertex in enumerate(self._links)}
        steps = [(place[one], place[other], self._passing(one)) for one in place for other in self._links[one]]
        nearer, further, cost = np.array(steps).T
        return place, csr_matrix((cost.astype(np.float64), (nearer, further)), (len(place), len(place)))


def link_graph(links: Sequence[Link]) -> networkx.MultiGraph:
    """The links as edges, whose keys are their numbers."""
    import networkx  # half a second, which only builders of networks need

    graph = networkx.MultiGraph()
    for number, link in enumerate(links):
        graph.add_edge(*link.ends, key=number)
    return graph


def is_tree_of_switches(switches: Collection[str], links: Sequence[Link]) -> bool:
    """Whether the links between switches form no cycle."""
    import networkx

    between = link_graph([link for link in links if set(link.ends) <= set(switches)])
    return len(between) == 0 or bool(networkx.is_forest(between))
