"""The network between guests, in the coordinator's own network namespace: a bridge, and a tap for every node. The
kernel removes it with the coordinator."""

from __future__ import annotations

from scaleproof.fabric.guests.guest_plan import GuestPlan

BRIDGE = "wire"
BURST_S = 0.004
"""Burst of a shaped link in seconds at its rate; at least LEAST_BURST bytes, for one frame and a large segment."""
LEAST_BURST = 64 << 10
QUEUE = 4 << 20
"""Bytes that a port of the switch queues before it drops frames."""
FRAMES = 4000
"""Frames that a tap queues: with the usual length the bursts of soft-RoCE are dropped."""


def tap(node: int) -> str:
    """The switch's port of a node."""
    return f"node{node}"


def mac(node: int) -> str:
    """Hardware address of a node's eth0."""
    return f"52:54:00:77:{node >> 8:02x}:{node & 255:02x}"


def burst(mbit: float) -> int:
    """Bytes of the token bucket of a link with this rate."""
    return max(LEAST_BURST, round(mbit * 1e6 / 8 * BURST_S))


def make(plan: GuestPlan) -> None:
    """Makes the bridge and the taps, each with the configured rate towards its node. Nodes shape and delay their own
    sends."""
    from pyroute2 import IPRoute  # nodes also read this file, and the import takes a second in a guest

    with IPRoute() as route:
        route.link("set", index=1, state="up")
        route.link("add", ifname=BRIDGE, kind="bridge", mtu=plan.mtu)
        bridge = route.link_lookup(ifname=BRIDGE)[0]
        for node in range(plan.nodes):
            route.link("add", ifname=tap(node), kind="tuntap", mode="tap")
            port = route.link_lookup(ifname=tap(node))[0]
            route.link("set", index=port, mtu=plan.mtu, txqlen=FRAMES, master=bridge, state="up")
            if plan.link_mbit:
                route.tc(
                    "add", "tbf", port, rate=round(plan.link_mbit * 1e6 / 8), burst=burst(plan.link_mbit), limit=QUEUE
                )
        route.link("set", index=bridge, mtu=plan.mtu, state="up")


def set_link(node: int, up: bool) -> None:
    """Plugs in or unplugs the node's cable at the switch. Setting the tap down instead would leave the node's driver in
    a permanent error."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        bridge = route.link_lookup(ifname=BRIDGE)[0]
        route.link("set", index=route.link_lookup(ifname=tap(node))[0], master=bridge if up else 0)
