"""Which nodes look at the rate of their way to the next one, before anything is measured, all at the same time: none
whose finding would be another's doing."""

from __future__ import annotations

from scaleproof.fabric.topology import EmulatedNetwork

TOGETHER_MBIT = 2000
"""What all of them may send at once; one may be above it."""
SLOW_MBIT = 10
"""Below this rate answers to one stream wait behind another one the other way."""
LEAST_MBIT = 0.2
"""Below this rate TCP sends again what only waits its turn: nobody looks."""


def slowest(network: EmulatedNetwork, number: int, to: int) -> float | None:
    """Mbit/s of the slowest link of a way; None: none has a rate."""
    return min((link.mbit for link in network.route_links(number, to) if link.mbit), default=None)


def rate_probers(network: EmulatedNetwork) -> set[int]:
    """Nodes whose ways share no link in the same direction, and none at all where one of the two is slow; together they
    send TOGETHER_MBIT."""
    found, entered, links, slow, together = set[int](), set[tuple[int, str]](), set[int](), set[int](), 0.0
    nodes = network.cluster.nodes
    for number in range(nodes):
        steps, mbit = (
            set(network.directed_links(number, (number + 1) % nodes)),
            slowest(network, number, (number + 1) % nodes),
        )
        own = {link for link, _ in steps}
        if mbit is None or mbit < LEAST_MBIT or (found and together + mbit > TOGETHER_MBIT):
            continue
        if steps & entered or own & (links if mbit < SLOW_MBIT else slow):
            continue
        found.add(number)
        entered, links, together = entered | steps, links | own, together + mbit
        slow |= own if mbit < SLOW_MBIT else set()
    return found
