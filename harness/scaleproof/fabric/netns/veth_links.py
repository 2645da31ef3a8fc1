"""Makes a network out of veth pairs and bridges, by netlink: the coordinator its links and switches, every node its own
interfaces."""

from __future__ import annotations

from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import ndmsg

from scaleproof.fabric.guests.guest_plan import address
from scaleproof.fabric.netns import delay_relay
from scaleproof.fabric.topology import End, Network
from scaleproof.spec.cluster import Link

MTU = 1500
FRAME = MTU + 14
"""Bytes of the largest frame as the kernel counts it: with its Ethernet header, without what only the line adds
(preamble, check sum, gap: 24 bytes)."""
BURST_S = 0.001
"""What a shaped link may send at once: so much of a second at its rate, and two frames at the least."""
QUEUE_S, LEAST_QUEUE = 0.02, 256 << 10
"""What waits at an end of a link before it drops: so much of a second at its rate, and so many bytes at the least."""
SEGMENTS = 1 << 16
"""Bytes that the kernel hands down as one piece at most, to be cut into frames later."""
FRAMES = 1000
"""Pieces that wait at an end without a rate."""
SHAPED_MBIT = 2**32 * 8 / 1e6
"""From here on a link is not shaped: the kernel counts bytes per second in 32 bits, and no machine moves so much
through veth."""


def burst(mbit: float) -> int:
    """Bytes of the token bucket of a link with this rate."""
    return max(2 * FRAME, round(mbit * 1e6 / 8 * BURST_S))


def queue(mbit: float) -> int:
    """Bytes that wait behind that bucket."""
    return max(LEAST_QUEUE, round(mbit * 1e6 / 8 * QUEUE_S))


def has_netem() -> bool:
    """Whether this kernel delays by itself; tried on this namespace's loopback."""
    with IPRoute() as route:
        try:
            route.tc("add", "netem", 1, "1:", delay=0)
        except NetlinkError:
            return False
        route.tc("del", "netem", 1, "1:")
    return True


def make(network: Network, pids: list[int], netem: bool) -> list[int]:
    """In the coordinator's namespace: every link, its ends where they belong (`pids`: a process of each node), and a bridge
    for every switch. A link is a veth pair; with a delay, and no netem in the kernel, two taps and a relay, whose
    process's number is in what is returned."""
    relays = []
    with IPRoute() as route:
        route.link("set", index=1, state="up")
        bridges = {place: f"switch{number}" for number, place in enumerate(network.cluster.switches)}
        for name in bridges.values():
            route.link(
                "add", ifname=name, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0, mtu=MTU
            )
        for link, (one, other) in zip(network.links, network.ends, strict=True):
            if link.delay_ms and not netem:
                relays.append(delay_relay.start((one, other), link.delay_ms, pids))
            else:
                route.link("add", kind="veth", **_end(one, link, pids), peer=_end(other, link, pids))
        known = _interfaces(route)
        for place, name in bridges.items():
            route.link("set", index=known[name], state="up")
            for link, end in [
                (link, end)
                for link, pair in zip(network.links, network.ends, strict=True)
                for end in pair
                if end.place == place
            ]:
                route.link("set", index=known[end.name], **_tuning(link), master=known[name], state="up")
                shape(route, known[end.name], link, netem)
            if not network.bridged:
                _write_out(route, network, place, known)
    return relays


def set_up(network: Network, number: int, netem: bool) -> None:
    """In a node's namespace, once its ends are there: loopback, addresses, rates, neighbours, and routes where they
    have to be written out. Neighbours are written down everywhere: what a kernel learns by itself it keeps for 1024 of
    them in all namespaces together, and 64 nodes have 4032."""
    with IPRoute() as route:
        route.link("set", index=1, state="up")
        known, own = _interfaces(route), network.of_node(number)
        for place, (link, end) in enumerate(own):
            if place == 0:
                route.addr(
                    "add", index=known[end.name], address=address(number), prefixlen=16 if network.bridged else 32
                )
            route.link("set", index=known[end.name], **_tuning(network.links[link]), state="up")
            shape(route, known[end.name], network.links[link], netem)
        near = set[tuple[int, str]]()
        for way in network.ways[number]:
            outs = [(way.out, way.mac), *way.beside]
            for out, mac in outs:
                if (way.via, out) not in near:
                    near.add((way.via, out))
                    route.neigh("add", dst=address(way.via), lladdr=mac, ifindex=known[out], state="permanent")
            if network.bridged:
                continue
            onward: dict[str, Any] = {} if way.via == way.to else {"gateway": address(way.via), "flags": ["onlink"]}
            hops = [{"oif": known[out], **onward} for out, _ in outs]
            ways = hops[0] if len(hops) == 1 else {"multipath": hops}
            route.route(
                "add",
                dst=f"{address(way.to)}/32",
                prefsrc=address(number),
                **({} if onward else {"scope": "link"}),
                **ways,
            )


def set_links(network: Network, number: int, up: bool) -> None:
    """Pull a node's cables out of their switches, or put them back. SystemExit where a link leads straight to another
    node: both its ends are in nodes, whose kernels would forget the routes over it."""
    if straight := [
        link for link, _ in network.of_node(number) if all(end.node is not None for end in network.ends[link])
    ]:
        ends = " and ".join(network.links[straight[0]].ends)
        raise SystemExit(
            f"links.json pulls node {number}, but between {ends} there is no switch: only cables to switches can be pulled"
        )
    with IPRoute() as route:
        known = _interfaces(route)
        for pair in (network.ends[link] for link, _ in network.of_node(number)):
            for end in pair:
                if end.name in known:
                    route.link("set", index=known[end.name], state="up" if up else "down")


def _end(end: End, link: Link, pids: list[int]) -> dict[str, Any]:
    made = {"ifname": end.name, "address": end.mac, **_tuning(link)}
    return made if end.node is None else made | {"net_ns_pid": pids[end.node]}


def _tuning(link: Link) -> dict[str, Any]:
    """Of either end. Pieces are smaller than the bucket: it may be looked at late by so much as is left of it."""
    pieces = min(SEGMENTS, max(burst(link.mbit) // 4 // FRAME, 1) * FRAME) if link.mbit else SEGMENTS
    return {"mtu": MTU, "gso_max_size": pieces, "txqlen": delay_relay.FRAMES if link.delay_ms else FRAMES}


def shape(route: IPRoute, index: int, link: Link, netem: bool) -> None:
    """What an end sends: netem for the delay, a token bucket for the rate, the bucket inside netem where both are the
    kernel's."""
    place: dict[str, Any] = {}
    if link.delay_ms and netem:
        route.tc("add", "netem", index, "1:", delay=round(link.delay_ms * 1e3), limit=100_000)
        place = {"parent": "1:1"}
    if link.mbit and link.mbit < SHAPED_MBIT:
        route.tc(
            "add",
            "tbf",
            index,
            "2:",
            rate=round(link.mbit * 1e6 / 8),
            burst=burst(link.mbit),
            limit=queue(link.mbit),
            **place,
        )


def _write_out(route: IPRoute, network: Network, place: str, known: dict[str, int]) -> None:
    """Ports neither learn nor flood; each destination goes out of the one port that is written down."""
    for end in (end for pair in network.ends for end in pair if end.place == place):
        route.link(
            "set", index=known[end.name], kind="bridge_slave", learning=0, unicast_flood=0, mcast_flood=0, bcast_flood=0
        )
    for mac, port in network.entries.get(place, set()):
        try:
            route.fdb("add", ifindex=known[port], lladdr=mac, state=ndmsg.states["noarp"])
        except NetlinkError as error:
            raise RuntimeError(f"switch {place}: no entry for {mac} at {port}: {error}") from error


def _interfaces(route: IPRoute) -> dict[str, int]:
    return {link.get("ifname"): link["index"] for link in route.get_links()}
