"""Selects the nodes that measure the rate of their route to the next node before a launch. They measure at the same
time, so no stream may slow down another one."""

from __future__ import annotations

from scaleproof.fabric.topology import EmulatedNetwork

TOGETHER_MBIT = 2000
"""Limit on the sum of their rates; a single node may exceed it."""
SLOW_MBIT = 20
"""Below this rate acknowledgements of a stream wait behind another stream in the opposite direction."""
LEAST_MBIT = 0.2
"""Below this rate TCP retransmits segments that are only queued, so the rate is not measured."""


def slowest(network: EmulatedNetwork, number: int, to: int) -> float | None:
    """Rate of the slowest link of a route in Mbit/s; None: no link has a rate."""
    return min((link.mbit for link in network.route_links(number, to) if link.mbit), default=None)


def rate_probers(network: EmulatedNetwork) -> set[int]:
    """Nodes whose routes share no link in the same direction, and no link at all if one of the routes is slow. Together
    they send at most TOGETHER_MBIT."""
    chosen, entered, links, slow, together = set[int](), set[tuple[int, str]](), set[int](), set[int](), 0.0
    nodes = network.cluster.nodes
    for number in range(nodes):
        steps, mbit = (
            set(network.directed_links(number, (number + 1) % nodes)),
            slowest(network, number, (number + 1) % nodes),
        )
        own = {link for link, _ in steps}
        if mbit is None or mbit < LEAST_MBIT or (chosen and together + mbit > TOGETHER_MBIT):
            continue
        if steps & entered or own & (links if mbit < SLOW_MBIT else slow):
            continue
        chosen.add(number)
        entered, links, together = entered | steps, links | own, together + mbit
        slow |= own if mbit < SLOW_MBIT else set()
    return chosen
