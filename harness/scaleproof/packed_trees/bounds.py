"""The most that any packing of trees can carry, in units of a link's rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import networkx as nx

from scaleproof.packed_trees.link_graph import LinkGraph
from scaleproof.spec.errors import SpecError

MOST_DEVICES = 10
"""Partitions are enumerated up to here: 115,975 of ten devices."""


def broadcast_bound(graph: LinkGraph, root: int) -> float:
    """Smallest cut between the root and any other device: what arborescences from it can carry (Edmonds 1973)."""
    directed = nx.DiGraph()
    for (one, other), capacity in graph.capacities.items():
        directed.add_edge(one, other, capacity=capacity)
    others = (device for device in graph.devices if device != root)
    return float(min(nx.maximum_flow_value(directed, root, other) for other in others))


def best_root(graph: LinkGraph) -> tuple[int, float]:
    """The root with the largest bound, the lowest number of several, and its bound."""
    graph.check_connected()
    bounds = {root: broadcast_bound(graph, root) for root in graph.devices}
    root = max(graph.devices, key=lambda each: (bounds[each], -each))
    return root, bounds[root]


def all_reduce_bound(graph: LinkGraph) -> float:
    """min over partitions P of capacity between parts / (|P| - 1): what undirected spanning trees can carry
    (Nash-Williams, Tutte 1961). SpecError for more than MOST_DEVICES devices."""
    graph.check_connected()
    if len(graph.devices) > MOST_DEVICES:
        raise SpecError(f"{graph.name}: partitions of {len(graph.devices)} devices are too many; up to {MOST_DEVICES}")
    place = {device: number for number, device in enumerate(graph.devices)}
    links = [(place[one], place[other], count) for (one, other), count in graph.links.items()]
    best = float("inf")
    for parts in partitions(len(place)):
        count = max(parts)
        if count:
            best = min(best, sum(links_of for one, other, links_of in links if parts[one] != parts[other]) / count)
    return best


@cache
def partitions(count: int) -> tuple[tuple[int, ...], ...]:
    """The part of each of so many elements, for every partition; parts are numbered in the order of their first
    elements."""
    return tuple(_grown((0,), count))


def _grown(parts: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    if len(parts) == count:
        yield tuple(parts)
        return
    for part in range(max(parts) + 2):
        yield from _grown((*parts, part), count)
