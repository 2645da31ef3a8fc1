"""The network between guests, in the coordinator's own network namespace: a bridge, and a tap for every node. The
kernel removes it with the coordinator."""

from __future__ import annotations

from scaleproof.fabric.guests.guest_plan import GuestPlan

BRIDGE = "wire"
BURST_S = 0.004
"""What a shaped link may send at once: so much of a second at its rate, at least one frame and a large segment."""
LEAST_BURST = 64 << 10
QUEUE = 4 << 20
"""Bytes that wait at a port of the switch before it drops."""
FRAMES = 4000
"""Frames that wait at a tap: one of the usual length drops the bursts of soft-RoCE."""


def tap(node: int) -> str:
    """The switch's port of a node."""
    return f"node{node}"


def mac(node: int) -> str:
    """Of a node's eth0."""
    return f"52:54:00:77:{node >> 8:02x}:{node & 255:02x}"


def burst(mbit: float) -> int:
    """Bytes of the token bucket of a link with this rate."""
    return max(LEAST_BURST, round(mbit * 1e6 / 8 * BURST_S))


def make(plan: GuestPlan) -> None:
    """Bridge and taps, each towards its node with the set rate; nodes themselves shape and delay what they send."""
    from pyroute2 import IPRoute  # nodes read this file too, and the import takes a guest a second

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
    """Unplug the node's cable from the switch, or plug it in again. A tap set down instead would leave the node's
    driver in an error for good."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        bridge = route.link_lookup(ifname=BRIDGE)[0]
        route.link("set", index=route.link_lookup(ifname=tap(node))[0], master=bridge if up else 0)
