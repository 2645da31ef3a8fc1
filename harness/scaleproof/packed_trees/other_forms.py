"""Trees of blink2020's other forms: PCI Express beside links, one-hop trees behind a switch, three phases over several
servers; and two binary trees, which these are compared with."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import networkx as nx

from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import LinkGraph
from scaleproof.packed_trees.multiplicative_weights import Packing
from scaleproof.packed_trees.tree_plan import Parents, TreePlan, parents_from, parts_of, tree_plans
from scaleproof.spec.errors import SpecError


def beside_links(packing: Packing, elements: int, slow_percent: float) -> list[TreePlan]:
    """Trees over links for all but so many per cent of the array, and one tree for these between devices that no link
    connects: a message between them takes PCI Express. SpecError where such pairs do not reach every device."""
    graph, cut = packing.graph, round(elements * (1 - slow_percent / 100))
    without = nx.complement(graph.graph)
    if not nx.is_connected(without):
        message = "the pairs without a link do not connect all devices, so that no tree over PCI Express reaches them"
        raise SpecError(f"{graph.name}: {message}; choose devices of both processors, such as 0, 1, 4, 6 of a DGX-1")
    slow = TreePlan(parents_from(without, packing.root), cut, elements)
    return [*tree_plans(packing, cut), *([slow] if cut < elements else [])]


def one_hop_trees(devices: int, elements: int) -> list[TreePlan]:
    """Each device is the root of a tree of one hop, with an equal part of the array, as on a DGX-2."""
    return [
        TreePlan({device: None if device == root else root for device in range(devices)}, start, stop)
        for root, (start, stop) in enumerate(parts_of([1.0] * devices, elements))
        if stop > start
    ]


def double_binary_trees(devices: int, elements: int) -> list[TreePlan]:
    """Two trees with half of the array each; a device that passes messages on in one is a leaf of the other (Sanders,
    Speck, Traeff 2009). With an odd number of devices one may pass them on in both."""
    other: Callable[[int], int] = (
        (lambda place: devices - 1 - place) if devices % 2 == 0 else (lambda place: (place + 1) % devices)
    )
    first = {place: _binary_parent(place, devices) for place in range(devices)}
    second = {other(place): None if above is None else other(above) for place, above in first.items()}
    (start, middle), (_, stop) = parts_of([1.0, 1.0], elements)
    return [plan for plan in (TreePlan(first, start, middle), TreePlan(second, middle, stop)) if plan.stop > plan.start]


def three_phases(graph: LinkGraph, elements: int) -> list[TreePlan]:
    """An all-reduce over servers, which are the parts of a graph that links connect: each part of the array is reduced
    over a tree of each server, between the roots of these trees, and broadcast the same way back. Servers take turns as
    the one whose root has the sum, so that each sends as much as it receives. SpecError for a single server."""
    servers = [
        _trees_of(graph.of(part), elements) for part in sorted(map(sorted, nx.connected_components(graph.graph)))
    ]
    if len(servers) == 1:
        raise SpecError(f"{graph.name}: links connect all devices, so that it is one server; three phases need two")
    edges = sorted({edge for trees in servers for tree in trees for edge in (tree.start, tree.stop)})
    plans = []
    for start, stop in pairwise(edges):
        local = [next(tree for tree in trees if tree.start <= start < tree.stop) for trees in servers]
        for first, (begin, end) in enumerate(parts_of([1.0] * len(servers), stop - start)):
            if end > begin:
                plans.append(TreePlan(_joined(local, first), start + begin, start + end))
    return plans


def _trees_of(server: LinkGraph, elements: int) -> list[TreePlan]:
    if len(server.devices) == 1:
        return [TreePlan({server.devices[0]: None}, 0, elements)]
    return tree_plans(few_trees(server, None), elements)


def _joined(local: list[TreePlan], first: int) -> Parents:
    """The servers' trees as one, whose root is that of the `first`."""
    parents: Parents = {device: above for tree in local for device, above in tree.parents.items()}
    return parents | {tree.root: local[first].root for place, tree in enumerate(local) if place != first}


def _binary_parent(place: int, devices: int) -> int | None:
    """In a binary tree in order: odd places are leaves, and place 0 is above all."""
    if place == 0:
        return None
    lowest = place & -place
    above = (place ^ lowest) | (lowest << 1)
    return above if above < devices else place ^ lowest
