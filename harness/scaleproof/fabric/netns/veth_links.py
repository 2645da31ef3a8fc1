"""Makes a network of veth pairs and bridges by netlink: the coordinator makes links and switches, every node configures
its interfaces."""

from __future__ import annotations

from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import ndmsg

from scaleproof.fabric.guests.guest_plan import address
from scaleproof.fabric.netns import delay_relay
from scaleproof.fabric.topology import EmulatedNetwork, LinkEnd, NextHop, Route
from scaleproof.spec.cluster import Link
from scaleproof.spec.link_rates import FRAME, MTU, burst, bytes_per_s

# Queue at an end of a link: seconds at its rate, but at least LEAST_QUEUE bytes.
QUEUE_S, LEAST_QUEUE = 0.02, 256 << 10
# Largest segment in bytes that the kernel passes down before it is divided into frames.
SEGMENTS = 1 << 16
# Segments queued at an end without a rate.
FRAMES = 1000
# Links of this rate or more are not shaped: the kernel counts bytes per second in 32 bits, and no machine moves that
# much through veth.
SHAPED_MBIT = 2**32 * 8 / 1e6


def queue(mbit: float) -> int:
    """Bytes of the queue behind that bucket."""
    return max(LEAST_QUEUE, round(mbit * 1e6 / 8 * QUEUE_S))


def has_netem() -> bool:
    """Whether this kernel has netem; tried on this namespace's loopback."""
    with IPRoute() as route:
        try:
            route.tc("add", "netem", 1, "1:", delay=0)
        except NetlinkError:
            return False
        route.tc("del", "netem", 1, "1:")
    return True


def make(network: EmulatedNetwork, pids: list[int], netem: bool) -> list[int]:
    """In the coordinator's namespace: makes every link, and a bridge for every switch. `pids`: a process of each node.

    A link is a veth pair; if it has a delay and the kernel has no netem, it is two taps and a relay. Returns the
    process ids of relays."""
    relays = []
    with IPRoute() as route:
        route.link("set", index=1, state="up")
        bridges = {switch: f"switch{number}" for number, switch in enumerate(network.cluster.switches)}
        for name in bridges.values():
            add_bridge(route, name)
        for link, ends in zip(network.links, network.ends, strict=True):
            if link.delay_ms and not netem:
                relays.append(delay_relay.start(ends, link.delay_ms, pids))
            else:
                route.link("add", kind="veth", **_end(ends[0], link, pids), peer=_end(ends[1], link, pids))
        indices = _interfaces(route)
        for switch, name in bridges.items():
            route.link("set", index=indices[name], state="up")
            for link, end in network.vertex_ends(switch):
                index = indices[end.interface]
                route.link("set", index=index, **_tuning(link), master=indices[name], state="up")
                shape(route, index, link, netem)
            if not network.bridged:
                _write_forwarding(route, network, switch, indices)
    return relays


def add_bridge(route: IPRoute, name: str) -> None:
    """Makes a switch that forwards from the first frame on."""
    route.link("add", ifname=name, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0, mtu=MTU)


def set_up(network: EmulatedNetwork, number: int, netem: bool) -> None:
    """In a node's namespace, after its links were made: configures loopback, addresses, rates, neighbours, and routes
    unless the network is bridged."""
    with IPRoute() as route:
        route.link("set", index=1, state="up")
        indices, own = _interfaces(route), network.node_ends(number)
        if own:
            prefix = 16 if network.bridged else 32
            route.addr("add", index=indices[own[0][1].interface], address=address(number), prefixlen=prefix)
        for link, end in own:
            route.link("set", index=indices[end.interface], **_tuning(network.links[link]), state="up")
            shape(route, indices[end.interface], network.links[link], netem)
        _write_neighbours(route, network, number, indices)
        if not network.bridged:
            _write_routes(route, network, number, indices)


def _write_neighbours(route: IPRoute, network: EmulatedNetwork, number: int, indices: dict[str, int]) -> None:
    """Writes the neighbours of every network. The kernel's own table holds 1024 neighbours of all namespaces together,
    and 64 nodes have 4032."""
    addresses = dict[tuple[int, str], str]()
    for way in network.routes[number]:
        for hop in _hops(way):
            addresses.setdefault((way.via, hop.interface), hop.mac)
    for (node, interface), mac in addresses.items():
        route.neigh("add", dst=address(node), lladdr=mac, ifindex=indices[interface], state="permanent")


def _write_routes(route: IPRoute, network: EmulatedNetwork, number: int, indices: dict[str, int]) -> None:
    for way in network.routes[number]:
        onward: dict[str, Any] = {} if way.via == way.to else {"gateway": address(way.via), "flags": ["onlink"]}
        hops = [{"oif": indices[hop.interface], **onward} for hop in _hops(way)]
        route.route(
            "add",
            dst=f"{address(way.to)}/32",
            prefsrc=address(number),
            **({} if onward else {"scope": "link"}),
            **(hops[0] if len(hops) == 1 else {"multipath": hops}),
        )


def _hops(route: Route) -> list[NextHop]:
    return [NextHop(route.interface, route.mac), *route.parallel]


def set_links(network: EmulatedNetwork, number: int, up: bool) -> None:
    """Plugs in or unplugs a node's cables at their switches. Raises SystemExit if a link leads directly to another
    node: both its ends are in nodes, whose kernels would drop the routes over it."""
    for link, _ in network.node_ends(number):
        if all(end.node is not None for end in network.ends[link]):
            raise SystemExit(
                f"links.json unplugs node {number}, but between {' and '.join(network.links[link].ends)} there is no "
                "switch: only cables to switches can be unplugged"
            )
    with IPRoute() as route:
        indices = _interfaces(route)
        for link, _ in network.node_ends(number):
            for end in network.ends[link]:
                if end.interface in indices:
                    route.link("set", index=indices[end.interface], state="up" if up else "down")


def _end(end: LinkEnd, link: Link, pids: list[int]) -> dict[str, Any]:
    options = {"ifname": end.interface, "address": end.mac, **_tuning(link)}
    return options if end.node is None else options | {"net_ns_pid": pids[end.node]}


def _tuning(link: Link) -> dict[str, Any]:
    """Of either end. Pieces are smaller than the bucket, so that the kernel may come late to fill it."""
    pieces = min(SEGMENTS, max(burst(link.mbit) // 4 // FRAME, 1) * FRAME) if link.mbit else SEGMENTS
    return {"mtu": MTU, "gso_max_size": pieces, "txqlen": delay_relay.FRAMES if link.delay_ms else FRAMES}


def shape(route: IPRoute, index: int, link: Link, netem: bool) -> None:
    """What an end sends: netem for the delay, a token bucket for the rate, the bucket inside netem where both are the
    kernel's."""
    parent: dict[str, Any] = {}
    if link.delay_ms and netem:
        route.tc("add", "netem", index, "1:", delay=round(link.delay_ms * 1e3), limit=100_000)
        parent = {"parent": "1:1"}
    if link.mbit and link.mbit < SHAPED_MBIT:
        route.tc(
            "add",
            "tbf",
            index,
            "2:",
            rate=round(bytes_per_s(link.mbit)),
            burst=burst(link.mbit),
            limit=queue(link.mbit),
            **parent,
        )


def _write_forwarding(route: IPRoute, network: EmulatedNetwork, switch: str, indices: dict[str, int]) -> None:
    """Configures a switch whose ports neither learn nor flood: frames to a destination leave by one fixed port."""
    flooding = {"learning": 0, "unicast_flood": 0, "mcast_flood": 0, "bcast_flood": 0}
    for _, end in network.vertex_ends(switch):
        route.link("set", index=indices[end.interface], kind="bridge_slave", **flooding)
    for mac, port in network.forwarding.get(switch, set()):
        try:
            route.fdb("add", ifindex=indices[port], lladdr=mac, state=ndmsg.states["noarp"])
        except NetlinkError as error:
            raise RuntimeError(f"switch {switch}: no entry for {mac} at {port}: {error}") from error


def _interfaces(route: IPRoute) -> dict[str, int]:
    return {link.get("ifname"): link["index"] for link in route.get_links()}
