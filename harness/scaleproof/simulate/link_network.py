"""A cluster as directed links with capacities and delays, and the routes between nodes, which the emulated cluster
uses too."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from scaleproof.fabric.shortest_paths import ShortestPaths
from scaleproof.spec.cluster import Cluster, node_name
from scaleproof.spec.errors import SpecError

UNLIMITED = float("inf")
MBIT = 1e6 / 8
"""Bytes/s of 1 Mbit/s."""


class Network:
    """Links between the nodes and switches in use, in both directions. `goodput`: share of a link's rate that is
    payload. Traffic between two nodes is spread over the parallel links between them, but one message uses one link. Of
    parallel links to a switch only one is used, as in fabric netns."""

    def __init__(self, cluster: Cluster, goodput: float = 1.0) -> None:
        self.cluster, self.nodes = cluster, cluster.nodes
        self._own = {node_name(number): number for number in range(cluster.nodes)}
        names = self._own.keys() | set(cluster.switches)
        self._links = [link for link in cluster.links if set(link.ends) <= names]
        rates: dict[tuple[str, str], float] = {}
        singles: dict[tuple[str, str], float] = {}
        delays: dict[tuple[str, str], float] = {}
        for link in self._links:
            rate = UNLIMITED if link.mbit is None else link.mbit * MBIT * goodput
            together = rate * link.count
            for ends in (link.ends, link.ends[::-1]):
                before = rates.get(ends, 0.0)
                rates[ends] = before + together if self._own.keys() >= set(ends) else max(before, together)
                singles[ends] = max(singles.get(ends, 0.0), rate)
                delays[ends] = link.delay_ms / 1000
        self._number = {ends: number for number, ends in enumerate(rates)}
        self.capacities, self._singles, self.delays = (
            np.array([table[ends] for ends in rates]) for table in (rates, singles, delays)
        )
        """Of every direction between two nodes or switches: payload bytes/s in total, payload bytes/s of one message,
        and delay in s."""
        self._seconds, self._most = list[float](self.delays.tolist()), list[float](self._singles.tolist())
        self._routes: dict[tuple[int, int], tuple[int, ...]] = {}

    @cached_property
    def _spokes(self) -> tuple[list[int], list[int]] | None:
        """For a star, per node: the numbers of its link to the switch and from it. None for any other graph."""
        switches = {name for ends in self._number for name in ends} - self._own.keys()
        if len(switches) != 1 or len(self._number) != 2 * self.nodes:
            return None
        switch = switches.pop()
        if any((name, switch) not in self._number for name in self._own):
            return None
        return [self._number[name, switch] for name in self._own], [self._number[switch, name] for name in self._own]

    @cached_property
    def star(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """For a star, per node: payload bytes/s to the switch and from it, and the link's delay in s. None for any
        other graph."""
        if self._spokes is None:
            return None
        up, down = self._spokes
        return self._singles[up], self._singles[down], self.delays[up]

    def route(self, source: int, destination: int) -> tuple[int, ...]:
        """Numbers of the directed links on the route. It has the fewest links, and passes through other nodes only if
        there is no other route. Empty within a node. Raises SpecError when the nodes in use are not connected."""
        if source == destination:
            return ()
        if self._spokes is not None:
            return self._spokes[0][source], self._spokes[1][destination]
        pair = source, destination
        if pair not in self._routes:
            self._routes[pair] = self._links_between(node_name(source), node_name(destination))
        return self._routes[pair]

    def _links_between(self, name: str, goal: str) -> tuple[int, ...]:
        links = list[int]()
        while name != goal:
            step = self._paths.step(name, goal)
            if step is None:
                raise SpecError(
                    f"cluster {self.cluster.name!r}: {name} has no way to {goal} over the {self.nodes} nodes in use"
                )
            links.append(self._number[name, step[1]])
            name = step[1]
        return tuple(links)

    def alike(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Whether directed links have the same rates and delay as others."""
        tables = np.stack([self.capacities, self._singles, self.delays])
        return (tables[:, some] == tables[:, others]).all(axis=0)

    def delay_s(self, route: tuple[int, ...]) -> float:
        """Delay in s of a route, one way."""
        return sum(self._seconds[link] for link in route)

    def most(self, route: tuple[int, ...], beta: float) -> float:
        """Highest rate of one message in bytes/s: limited by the slowest link, and by software that needs `beta` s per
        byte."""
        links = min((self._most[link] for link in route), default=UNLIMITED)
        return min(links, 1 / beta) if beta else links

    @cached_property
    def _paths(self) -> ShortestPaths:
        return ShortestPaths(self._links, self._own)
