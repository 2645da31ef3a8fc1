"""Interfaces, addresses and routes of a described cluster, so that every node reaches every other node.

If every node has one link and the switches form a tree, bridges learn by themselves and all nodes share one subnet
(`bridged`). For any other graph all routes are configured: routes and neighbours in nodes, forwarding entries at
switches, so that no broadcast circulates and the same route is used every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scaleproof.fabric.shortest_paths import ShortestPaths, is_tree_of_switches
from scaleproof.spec.cluster import Cluster, Link, node_name
from scaleproof.spec.errors import SpecError

# At lower rates a frame takes more than a second.
LEAST_MBIT = 0.01
# Ports of a bridge: the kernel numbers them in 10 bits, from 1.
PORTS = 1023


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """One end of a link: an interface of node number `node`, or of a switch (node: None). `vertex`: name of either."""

    vertex: str
    node: int | None
    interface: str
    mac: str


class NextHop(NamedTuple):
    """An interface of a node, and the hardware address that the interface sends to."""

    interface: str
    mac: str


class Step(NamedTuple):
    """A link on a path, and its two ends in the order in which they are passed."""

    link: int
    start: LinkEnd
    stop: LinkEnd


@dataclass(frozen=True, slots=True)
class Route:
    """How a node sends to node `to`: from its `interface` to the interface with address `mac`, which belongs to node
    `via`."""

    to: int
    via: int
    interface: str
    mac: str
    # all links to node `to`, in order
    links: tuple[int, ...]
    # further links between the same two nodes: connections are spread over all of them
    parallel: tuple[NextHop, ...] = ()


@dataclass(slots=True)
class EmulatedNetwork:
    """A cluster with its interfaces and routes."""

    cluster: Cluster
    links: list[Link]
    # of each link
    ends: list[tuple[LinkEnd, LinkEnd]]
    bridged: bool = True
    # of each node, by destination
    routes: list[list[Route]] = field(default_factory=list)
    # of each switch: hardware address of a destination, and the port that leads there
    forwarding: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    def node_ends(self, number: int) -> list[tuple[int, LinkEnd]]:
        """A node's interfaces, each with the number of its link."""
        return [(link, end) for link, pair in enumerate(self.ends) for end in pair if end.node == number]

    def vertex_ends(self, vertex: str) -> list[tuple[Link, LinkEnd]]:
        """The interfaces of a node or switch, each with its link."""
        pairs = zip(self.links, self.ends, strict=True)
        return [(link, end) for link, pair in pairs for end in pair if end.vertex == vertex]

    def route_links(self, number: int, to: int) -> list[Link]:
        """The links from a node to another."""
        return [self.links[link] for link in self._route(number, to).links]

    def directed_links(self, number: int, to: int) -> list[tuple[int, str]]:
        """Numbers of the links from a node to another, each with the vertex at which it is entered."""
        vertex, directed = node_name(number), list[tuple[int, str]]()
        for link in self._route(number, to).links:
            directed.append((link, vertex))
            vertex = self._step(link, vertex).stop.vertex
        return directed

    def forwarding_nodes(self) -> set[int]:
        """Nodes that forward packets of other nodes."""
        return {route.via for routes in self.routes for route in routes if route.via != route.to}

    def add_route(self, paths: Mapping[str, tuple[int, str]], source: str, to: int) -> Route:
        """The route from a node along `paths` (of ShortestPaths.paths_to), with the forwarding entries at switches on
        its first section, which ends at the next node."""
        steps, vertex = list[Step](), source
        while vertex != node_name(to):
            link, following = paths[vertex]
            steps.append(self._step(link, vertex))
            vertex = following
        section = next(count for count, step in enumerate(steps, 1) if step.stop.node is not None)
        first, last = steps[0].start, steps[section - 1].stop
        assert last.node is not None
        for step in steps[1:section]:
            self.forwarding.setdefault(step.start.vertex, set()).add((last.mac, step.start.interface))
        parallel = self._parallel(source, last.node, first.interface) if section == 1 else ()
        return Route(to, last.node, first.interface, last.mac, tuple(step.link for step in steps), parallel)

    def _parallel(self, source: str, to: int, except_interface: str) -> tuple[NextHop, ...]:
        links = [link for link, pair in enumerate(self.ends) if source in (pair[0].vertex, pair[1].vertex)]
        return tuple(
            NextHop(step.start.interface, step.stop.mac)
            for step in (self._step(link, source) for link in links)
            if step.stop.node == to and step.start.interface != except_interface
        )

    def _step(self, link: int, vertex: str) -> Step:
        """The step over a link that begins at a vertex."""
        first, second = self.ends[link]
        return Step(link, first, second) if first.vertex == vertex else Step(link, second, first)

    def _route(self, number: int, to: int) -> Route:
        return next(route for route in self.routes[number] if route.to == to)


def emulated_network(cluster: Cluster) -> EmulatedNetwork:
    """The network of a cluster's nodes. Raises SpecError when they cannot reach each other without nodes that are not
    in use."""
    nodes = {node_name(number): number for number in range(cluster.nodes)}
    vertices = nodes.keys() | set(cluster.switches)
    links = [link for link in cluster.links if set(link.ends) <= vertices]
    _check_rates(cluster)
    _check_ports(cluster, links)
    network = EmulatedNetwork(cluster, links, _ends(links, nodes), bridged=_is_bridged(cluster, links))
    shortest = ShortestPaths(links, nodes)
    paths = [shortest.paths_to(name) for name in nodes]
    for name, number in nodes.items():
        others = [to for to in nodes.values() if to != number]
        if unreached := [to for to in others if name not in paths[to]]:
            raise SpecError(
                f"cluster {cluster.name!r}: {name} has no way to {node_name(unreached[0])} "
                f"over the {cluster.nodes} nodes in use"
            )
        network.routes.append([network.add_route(paths[to], name, to) for to in others])
    return network


def _check_rates(cluster: Cluster) -> None:
    for link in cluster.links:
        if link.mbit is not None and link.mbit < LEAST_MBIT:
            raise SpecError(
                f"cluster {cluster.name!r}: the link between {' and '.join(link.ends)} has "
                f"{link.mbit:.2g} Mbit/s after dilation and shrink; {LEAST_MBIT:g} is the least"
            )


def _check_ports(cluster: Cluster, links: list[Link]) -> None:
    counts = Counter(end for link in links for end in link.ends)
    for switch in cluster.switches:
        if counts[switch] > PORTS:
            raise SpecError(
                f"cluster {cluster.name!r}: switch {switch} has {counts[switch]} links, and a bridge {PORTS} ports; "
                "use fabric `simulated`"
            )


def _ends(links: list[Link], nodes: Mapping[str, int]) -> list[tuple[LinkEnd, LinkEnd]]:
    used, ends = Counter[str](), list[tuple[LinkEnd, LinkEnd]]()
    for number, link in enumerate(links):
        pair = []
        for side, vertex in enumerate(link.ends):
            interface = f"eth{used[vertex]}" if vertex in nodes else f"port{number}.{side}"
            used[vertex] += 1
            mac = f"52:54:00:{number >> 8:02x}:{number & 255:02x}:{side:02x}"
            pair.append(LinkEnd(vertex, nodes.get(vertex), interface, mac))
        ends.append((pair[0], pair[1]))
    return ends


def _is_bridged(cluster: Cluster, links: list[Link]) -> bool:
    """Whether every node has one link, towards a switch, and the switches form a tree."""
    node_ends = Counter(vertex for link in links for vertex in link.ends if vertex not in cluster.switches)
    if any(count > 1 for count in node_ends.values()):
        return False
    if any(not set(link.ends) & set(cluster.switches) for link in links):
        return False
    return is_tree_of_switches(cluster.switches, links)
