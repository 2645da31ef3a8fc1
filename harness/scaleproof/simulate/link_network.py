"""A cluster as directed links with capacities and delays, and the way from node to node that the emulated cluster takes
too."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.fabric.shortest_paths import link_graph, paths_to
from scaleproof.spec.cluster import Cluster, node_name
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    import networkx

UNLIMITED = float("inf")
MBIT = 1e6 / 8
"""Bytes/s of 1 Mbit/s."""


class Network:
    """Links between the nodes and switches in use, both directions. `goodput`: share of a link's rate that is payload.
    Parallel links between the same two nodes share what goes between them, but one message takes one of them; of those
    to a switch one is used, as in fabric netns."""

    def __init__(self, cluster: Cluster, goodput: float = 1.0) -> None:
        self.cluster, self.nodes = cluster, cluster.nodes
        self._own = {node_name(number): number for number in range(cluster.nodes)}
        places = self._own.keys() | set(cluster.switches)
        self._links = [link for link in cluster.links if set(link.ends) <= places]
        rates: dict[tuple[str, str], float] = {}
        singles: dict[tuple[str, str], float] = {}
        delays: dict[tuple[str, str], float] = {}
        for link in self._links:
            rate = UNLIMITED if link.mbit is None else link.mbit * MBIT * goodput
            for way in (link.ends, link.ends[::-1]):
                rates[way] = (
                    rates.get(way, 0.0) + rate if self._own.keys() >= set(way) else max(rates.get(way, 0.0), rate)
                )
                singles[way] = max(singles.get(way, 0.0), rate)
                delays[way] = link.delay_ms / 1000
        self._number = {way: number for number, way in enumerate(rates)}
        self.capacities, self._singles, self.delays = (
            np.array([table[way] for way in rates]) for table in (rates, singles, delays)
        )
        """Payload bytes/s of every direction between two places, of one message on it, and s one way."""
        self._trees: dict[int, dict[str, tuple[int, str]]] = {}

    @cached_property
    def star(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Of a star, per node: payload bytes/s to the switch, from it, and the link's delay in s; None for any other
        graph."""
        switches = {place for way in self._number for place in way} - self._own.keys()
        if len(switches) != 1 or len(self._number) != 2 * self.nodes:
            return None
        switch = switches.pop()
        up = [self._number.get((place, switch)) for place in self._own]
        down = [self._number.get((switch, place)) for place in self._own]
        if None in up:
            return None
        return self._singles[up], self._singles[down], self.delays[up]  # type: ignore[index]

    def route(self, source: int, destination: int) -> tuple[int, ...]:
        """Numbers of the directions on the way: the fewest links, through other nodes only where nothing else leads
        there. Empty within a node.

        SpecError where there is no way over the nodes in use."""
        if source == destination:
            return ()
        goal, place, way = node_name(destination), node_name(source), []
        if destination not in self._trees:
            self._trees[destination] = paths_to(goal, self._graph, self._own)
        if place not in self._trees[destination]:
            raise SpecError(
                f"cluster {self.cluster.name!r}: {place} has no way to {goal} over the {self.nodes} nodes in use"
            )
        while place != goal:
            following = self._trees[destination][place][1]
            way.append(self._number[place, following])
            place = following
        return tuple(way)

    def delay_s(self, route: tuple[int, ...]) -> float:
        """One way along a route."""
        return float(self.delays[list(route)].sum()) if route else 0.0

    def most(self, route: tuple[int, ...], beta: float) -> float:
        """Bytes/s that one message takes at most: of one link at a time, and of software that needs `beta` s a byte."""
        links = float(self._singles[list(route)].min()) if route else UNLIMITED
        return min(links, 1 / beta) if beta else links

    @cached_property
    def _graph(self) -> networkx.MultiGraph:
        return link_graph(self._links)
