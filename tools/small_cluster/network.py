"""Links of a small cluster: every node's cable to its leaf switch, the leaves' cables to the spine, and one from the
spine to this machine."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv4Network

from pyroute2 import IPRoute

from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.netns.veth_links import add_bridge, shape
from scaleproof.fabric.small_clusters import HEAD, SmallCluster
from scaleproof.spec.cluster import Link
from scaleproof.spec.link_rates import MTU
from tools.small_cluster.files import switches

SPINE, UPLINK = "spine", "uplink"


def free_network() -> int:
    """A number N such that this machine has no address or route in 10.78.N.*; OSError when there is none."""
    with IPRoute() as route:
        taken = [
            IPv4Interface(f"{entry.get('address')}/{entry['prefixlen']}").network for entry in route.get_addr(family=2)
        ]
        taken += [
            IPv4Network(f"{to}/{entry['dst_len']}", strict=False)
            for entry in route.get_routes(family=2)
            if (to := entry.get("dst"))
        ]
    for number in range(256):
        if not any(IPv4Network(f"10.78.{number}.0/24").overlaps(network) for network in taken):
            return number
    raise OSError("no network 10.78.N.0/24 is free here")


def connect(cluster: SmallCluster, coordinator: int) -> None:
    """Create this machine's end of the cable to the cluster; `coordinator` is the coordinator's process id as seen from
    this machine. The kernel removes the link with the coordinator."""
    name = f"small{cluster.network}"
    with IPRoute() as route:
        route.link(
            "add", kind="veth", ifname=name, mtu=MTU, peer={"ifname": UPLINK, "mtu": MTU, "net_ns_pid": coordinator}
        )
        index = route.link_lookup(ifname=name)[0]
        route.addr("add", index=index, address=cluster.address("host"), prefixlen=24)
        route.link("set", index=index, state="up")


def uplinked() -> bool:
    """Whether the coordinator's end of the cable exists."""
    with IPRoute() as route:
        return bool(route.link_lookup(ifname=UPLINK))


def make_switches(cluster: SmallCluster) -> None:
    """In the coordinator's namespace: bridges, the cables between them, and the head's address on the spine."""
    with IPRoute() as route:
        route.link("set", index=1, state="up")
        for name in (SPINE, *switches(cluster)):
            add_bridge(route, name)
            _up(route, name)
        for leaf in switches(cluster):
            route.link(
                "add", kind="veth", ifname=f"{leaf}-spine", mtu=MTU, peer={"ifname": f"spine-{leaf}", "mtu": MTU}
            )
            _up(route, f"{leaf}-spine", leaf)
            _up(route, f"spine-{leaf}", SPINE)
        _up(route, UPLINK, SPINE)
        route.addr("add", index=route.link_lookup(ifname=SPINE)[0], address=cluster.address(HEAD), prefixlen=24)


def plug(cluster: SmallCluster, name: str, pid: int) -> None:
    """In the coordinator's namespace: the cable of a node whose first process is `pid`, the rate at the switch's
    end."""
    leaf = next(leaf for leaf, names in switches(cluster).items() if name in names)
    with IPRoute() as route:
        if route.link_lookup(ifname=name):  # left by a node that has just ended
            route.link("del", index=route.link_lookup(ifname=name)[0])
        route.link("add", kind="veth", ifname=name, mtu=MTU, peer={"ifname": INTERFACE, "mtu": MTU, "net_ns_pid": pid})
        _up(route, name, leaf)
        shape(route, route.link_lookup(ifname=name)[0], _link(cluster, name), netem=False)


def set_link(name: str, up: bool) -> None:
    """In the coordinator's namespace: a node's cable in, or out."""
    with IPRoute() as route:
        for index in route.link_lookup(ifname=name):
            route.link("set", index=index, state="up" if up else "down")


def set_up(cluster: SmallCluster, name: str) -> None:
    """In a node's namespace, once its cable is there."""
    with IPRoute() as route:
        route.link("set", index=1, state="up")
        index = route.link_lookup(ifname=INTERFACE)[0]
        route.addr("add", index=index, address=cluster.address(name), prefixlen=24)
        route.link("set", index=index, state="up")
        shape(route, index, _link(cluster, name), netem=False)


def _link(cluster: SmallCluster, name: str) -> Link:
    return Link((name, "leaf"), cluster.rate_mbit, 0.0)


def _up(route: IPRoute, name: str, bridge: str = "") -> None:
    index = route.link_lookup(ifname=name)[0]
    if bridge:
        route.link("set", index=index, master=route.link_lookup(ifname=bridge)[0])
    route.link("set", index=index, state="up")
