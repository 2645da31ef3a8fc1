"""A cluster as directed links with capacities and delays, and the shortest way from node to node."""

from __future__ import annotations

from collections import deque
from functools import cached_property

import numpy as np

from harness.spec.cluster import Cluster, node_name

UNLIMITED = float("inf")
MBIT = 1e6 / 8
"""Bytes/s of 1 Mbit/s."""


class Network:
    """Links of a cluster, both directions. `goodput`: share of a link's rate that is payload. Parallel links between the same two places count as one of
    their summed rate, since libraries stripe over them."""

    def __init__(self, cluster: Cluster, goodput: float = 1.0) -> None:
        self.nodes = cluster.nodes
        rates: dict[tuple[str, str], float] = {}
        delays: dict[tuple[str, str], float] = {}
        for link in cluster.links:
            for way in (link.ends, link.ends[::-1]):
                rates[way] = rates.get(way, 0.0) + (UNLIMITED if link.mbit is None else link.mbit * MBIT * goodput)
                delays[way] = link.delay_ms / 1000
        self._ways = list(rates)
        self.capacities = np.array([rates[way] for way in self._ways])
        """Payload bytes/s of every directed link."""
        self.delays = np.array([delays[way] for way in self._ways])
        """s, one way."""
        self._number = {way: number for number, way in enumerate(self._ways)}
        self._near: dict[str, list[str]] = {}
        for start, end in self._ways:
            self._near.setdefault(start, []).append(end)
        self._trees: dict[int, dict[str, str]] = {}

    @cached_property
    def star(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Of a star, per node: payload bytes/s to the switch, from it, and the link's delay in s; None for any other graph."""
        places = {place for way in self._ways for place in way}
        switches = places - {node_name(number) for number in range(self.nodes)}
        if len(switches) != 1 or len(self._ways) != 2 * self.nodes:
            return None
        switch = switches.pop()
        up = [self._number.get((node_name(number), switch)) for number in range(self.nodes)]
        down = [self._number.get((switch, node_name(number))) for number in range(self.nodes)]
        if None in up:
            return None
        return self.capacities[up], self.capacities[down], self.delays[up]  # type: ignore[index]

    def route(self, source: int, destination: int) -> tuple[int, ...]:
        """Numbers of the directed links on the way with the fewest links; of several, the one whose first link was named first. Empty within a node."""
        if source == destination:
            return ()
        if source not in self._trees:
            self._trees[source] = self._tree(source)
        before, place, way = self._trees[source], node_name(destination), []
        while place != node_name(source):
            way.append(self._number[before[place], place])
            place = before[place]
        return tuple(reversed(way))

    def delay_s(self, route: tuple[int, ...]) -> float:
        """One way along a route."""
        return float(self.delays[list(route)].sum()) if route else 0.0

    def _tree(self, source: int) -> dict[str, str]:
        """The place before each place on the way from a node."""
        found, edge = {node_name(source): ""}, deque([node_name(source)])
        while edge:
            place = edge.popleft()
            for near in self._near[place]:
                if near not in found:
                    found[near] = place
                    edge.append(near)
        return found
