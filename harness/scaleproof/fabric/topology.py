"""From a cluster's description to interfaces, addresses and ways: what has to be set so that every node reaches every
other over the links it has.

Where every node has one link and switches form a tree, bridges learn by themselves and nodes share one subnet
(`bridged`). Any other graph gets every way written out: routes and neighbours in nodes, forwarding entries at switches,
so that no broadcast runs in circles and the same way is taken every time."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from scaleproof.spec.cluster import Cluster, Link, node_name
from scaleproof.spec.errors import SpecError

LEAST_MBIT = 0.01
"""A frame takes more than a second below it."""
PORTS = 1023
"""Of a bridge: the kernel numbers them in 10 bits, from 1."""
TRANSIT = 1000
"""A way through another node counts as so many links: it is taken only where there is none over switches."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: an interface of node `node`, or of the switch `place` (node: None)."""

    place: str
    node: int | None
    name: str
    mac: str


@dataclass(frozen=True, slots=True)
class Way:
    """Where a node sends what goes to node `to`: out of its interface `out`, to the interface with the address `mac`,
    which is node `via`'s."""

    to: int
    via: int
    out: str
    mac: str
    links: tuple[int, ...]
    """All links to node `to`, in order."""
    beside: tuple[tuple[str, str], ...] = ()
    """Further interfaces and addresses of the same two nodes, over parallel links: connections are spread over all."""


@dataclass(slots=True)
class Network:
    """`ends[l]` are the two ends of `cluster.links[l]`. `ways[n]`: of node n, by destination. `entries`: switch to
    (destination's mac, port's name)."""

    cluster: Cluster
    links: list[Link]
    ends: list[tuple[End, End]]
    bridged: bool = True
    ways: list[list[Way]] = field(default_factory=list)
    entries: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    def of_node(self, number: int) -> list[tuple[int, End]]:
        """A node's interfaces, with their links."""
        return [(link, end) for link, pair in enumerate(self.ends) for end in pair if end.node == number]

    def way(self, number: int, to: int) -> list[Link]:
        """The links from a node to another."""
        found = next(way for way in self.ways[number] if way.to == to)
        return [self.links[link] for link in found.links]

    def steps(self, number: int, to: int) -> list[tuple[int, str]]:
        """Links of a way by number, each with the place at which it is entered."""
        place, found = node_name(number), list[tuple[int, str]]()
        for link in next(way for way in self.ways[number] if way.to == to).links:
            found.append((link, place))
            one, other = self.ends[link]
            place = other.place if one.place == place else one.place
        return found

    def transit(self) -> set[int]:
        """Nodes that pass on what is not for them."""
        return {way.via for ways in self.ways for way in ways if way.via != way.to}


def network_of(cluster: Cluster) -> Network:
    """For the nodes that the cluster has; SpecError when they do not reach each other without nodes that it does not
    have."""
    if slow := [link for link in cluster.links if link.mbit is not None and link.mbit < LEAST_MBIT]:
        rate = f"{slow[0].mbit:.2g} Mbit/s after dilation and shrink"
        raise SpecError(
            f"cluster {cluster.name!r}: the link between {' and '.join(slow[0].ends)} has {rate}; {LEAST_MBIT:g} is the least"
        )
    own = {node_name(number): number for number in range(cluster.nodes)}
    places = own.keys() | set(cluster.switches)
    links = [link for link in cluster.links if set(link.ends) <= places]
    crowded = [
        (place, count)
        for place, count in Counter(end for link in links for end in link.ends).items()
        if place in cluster.switches and count > PORTS
    ]
    if crowded:
        raise SpecError(
            f"cluster {cluster.name!r}: switch {crowded[0][0]} has {crowded[0][1]} links, and a bridge {PORTS} ports; use fabric `simulated`"
        )
    used, ends = defaultdict[str, int](int), list[tuple[End, End]]()
    for number, link in enumerate(links):
        made = []
        for side, place in enumerate(link.ends):
            name = f"eth{used[place]}" if place in own else f"port{number}.{side}"
            used[place] += 1
            made.append(End(place, own.get(place), name, f"52:54:00:{number >> 8:02x}:{number & 255:02x}:{side:02x}"))
        ends.append((made[0], made[1]))
    network = Network(cluster, links, ends, bridged=_bridged(cluster, links))
    near = neighbours(links)
    trees = [towards(place, near, own) for place in own]
    for place, number in own.items():
        lost = [node_name(to) for to in own.values() if to != number and place not in trees[to]]
        if lost:
            raise SpecError(
                f"cluster {cluster.name!r}: {place} has no way to {lost[0]} over the {cluster.nodes} nodes in use"
            )
        network.ways.append([_way(network, trees[to], place, to) for to in own.values() if to != number])
    return network


def _bridged(cluster: Cluster, links: list[Link]) -> bool:
    """One link a node, towards a switch, and switches without a circle."""
    ends = [place for link in links for place in link.ends if place not in cluster.switches]
    between = [link for link in links if set(link.ends) <= set(cluster.switches)]
    if len(set(ends)) != len(ends) or any(not set(link.ends) & set(cluster.switches) for link in links):
        return False
    root = {place: place for place in cluster.switches}

    def top(place: str) -> str:
        while root[place] != place:
            place = root[place]
        return place

    for link in between:
        one, other = map(top, link.ends)
        if one == other:
            return False
        root[one] = other
    return True


def neighbours(links: list[Link]) -> dict[str, list[tuple[int, str]]]:
    """Place to the numbers of its links and their other ends."""
    near = defaultdict[str, list[tuple[int, str]]](list)
    for number, link in enumerate(links):
        near[link.ends[0]].append((number, link.ends[1]))
        near[link.ends[1]].append((number, link.ends[0]))
    return near


def towards(goal: str, near: dict[str, list[tuple[int, str]]], nodes: dict[str, int]) -> dict[str, tuple[int, str]]:
    """Place to its link towards the goal and that link's other end, by the fewest links, through nodes only where
    nothing else leads there."""
    costs, found = {goal: 0}, dict[str, tuple[int, str]]()
    edge = [(0, goal)]
    while edge:
        cost, place = heapq.heappop(edge)
        if cost > costs[place]:
            continue
        step = TRANSIT if place in nodes and place != goal else 1
        for link, other in near[place]:
            if cost + step < costs.get(other, 1 << 60):
                costs[other], found[other] = cost + step, (link, place)
                heapq.heappush(edge, (cost + step, other))
    return found


def _way(network: Network, tree: dict[str, tuple[int, str]], place: str, to: int) -> Way:
    """From a node's place; notes at the switches on its way where the frames for the next node go."""
    links, first, passed, via = list[int](), "", list[tuple[str, str]](), -1
    goal, at, mac = node_name(to), place, ""
    while at != goal:
        link, other = tree[at]
        here, there = network.ends[link] if network.ends[link][0].place == at else network.ends[link][::-1]
        if not links:
            first = here.name
        links.append(link)
        if via < 0 and here.node is None:
            passed.append((at, here.name))
        if via < 0 and there.node is not None:
            via, mac = there.node, there.mac
        at = other
    for switch, port in passed:
        network.entries.setdefault(switch, set()).add((mac, port))
    pairs = [pair if pair[0].place == place else pair[::-1] for pair in network.ends]
    beside = [
        (here.name, there.mac)
        for here, there in pairs
        if here.place == place and there.node == via and here.name != first
    ]
    return Way(to, via, first, mac, tuple(links), tuple(beside) if len(passed) == 0 else ())
