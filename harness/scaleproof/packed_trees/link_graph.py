"""Graphs of links between devices, and the allocations that a scheduler may give out of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, permutations

import networkx as nx

from scaleproof.spec.cluster import described_nodes, load_cluster, node_name
from scaleproof.spec.errors import SpecError

Pair = tuple[int, int]


@dataclass(frozen=True)
class LinkGraph:
    """`links`: how many links connect two devices, the smaller number first. Each carries a unit of data per unit of
    time in either direction. `unit_mbit`: a link's rate, Mbit/s."""

    name: str
    devices: tuple[int, ...]
    links: Mapping[Pair, int] = field(hash=False)
    unit_mbit: float = 0.0

    @cached_property
    def neighbours(self) -> dict[int, list[int]]:
        """Of each device."""
        found: dict[int, list[int]] = {device: [] for device in self.devices}
        for one, other in self.links:
            found[one].append(other)
            found[other].append(one)
        return found

    @property
    def capacities(self) -> dict[Pair, float]:
        """Of each direction."""
        both = {pair: float(count) for pair, count in self.links.items()}
        return both | {(other, one): capacity for (one, other), capacity in both.items()}

    def of(self, devices: Iterable[int]) -> LinkGraph:
        """An allocation: these devices, and the links between them. SpecError for one that is not there."""
        chosen = tuple(sorted(set(devices)))
        if missing := [device for device in chosen if device not in self.devices]:
            raise SpecError(f"{self.name} has no device {missing[0]}; it has {self.devices[0]} to {self.devices[-1]}")
        links = {pair: count for pair, count in self.links.items() if set(pair) <= set(chosen)}
        return LinkGraph(f"{self.name} {{{','.join(map(str, chosen))}}}", chosen, links, self.unit_mbit)

    @cached_property
    def graph(self) -> nx.Graph:
        """For networkx; `weight`: links of an edge."""
        found = nx.Graph()
        found.add_nodes_from(self.devices)
        found.add_weighted_edges_from((one, other, count) for (one, other), count in self.links.items())
        return found

    @property
    def connected(self) -> bool:
        """Whether links lead from every device to every other."""
        return bool(nx.is_connected(self.graph))

    def check_connected(self) -> None:
        """Raises SpecError with devices that no links lead to."""
        parts = sorted((sorted(part) for part in nx.connected_components(self.graph)), key=len)
        if len(parts) > 1:
            alone = ", ".join(map(str, parts[0]))
            raise SpecError(f"{self.name} is not connected: no links lead to {alone}; leave these out")


def allocations(machine: LinkGraph, least: int = 3) -> Iterator[LinkGraph]:
    """Connected allocations of `least` devices or more, one of each kind: no two have the same links under other
    numbers."""
    kinds: set[tuple[int, tuple[int, ...]]] = set()
    for count in range(least, len(machine.devices) + 1):
        for devices in combinations(machine.devices, count):
            chosen = machine.of(devices)
            if chosen.connected and (kind := (count, _canonical(chosen))) not in kinds:
                kinds.add(kind)
                yield chosen


def _canonical(chosen: LinkGraph) -> tuple[int, ...]:
    """The same for graphs that differ in their numbers only: the least matrix over orders of devices that agree with
    their degrees."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for device in chosen.devices:
        counts = sorted(chosen.links[_pair(device, other)] for other in chosen.neighbours[device])
        groups.setdefault(tuple(counts), []).append(device)
    ordered = [groups[key] for key in sorted(groups)]
    return min(
        tuple(chosen.links.get(_pair(one, other), 0) for one, other in combinations(order, 2))
        for order in _orders(ordered)
    )


def _orders(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    if not groups:
        yield ()
        return
    for first in permutations(groups[0]):
        for rest in _orders(groups[1:]):
            yield (*first, *rest)


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)


@lru_cache
def machine(name: str) -> LinkGraph:
    """The direct links between nodes of a cluster's description (clusters/); the slowest of them is one link."""
    cluster = load_cluster(name, described_nodes(name))
    devices = {node_name(number): number for number in range(cluster.nodes)}
    direct = [link for link in cluster.links if set(link.ends) <= set(devices)]
    rates = [link.mbit for link in direct if link.mbit is not None]
    if not direct or len(rates) < len(direct):
        raise SpecError(f"cluster {name!r} has no links of stated rates from node to node")
    links: dict[Pair, int] = {}
    for link, rate in zip(direct, rates, strict=True):
        pair = _pair(devices[link.ends[0]], devices[link.ends[1]])
        links[pair] = links.get(pair, 0) + round(rate / min(rates))
    return LinkGraph(cluster.name, tuple(devices.values()), links, min(rates))
