"""Max-min fair rates of flows (Bertsekas and Gallager, Data Networks, section 6.5), for compiled code. When a flow
comes or goes, only flows are computed anew that share a busy link with it, directly or through others. A link on which
all flows together could not use the capacity limits none of them, and connects none."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.engine.event_queue import FLOW_END, EventQueue, push
from scaleproof.simulate.engine.flow_network import CHANGED, NONE, RECENT, SAME, FlowNetwork, limits
from scaleproof.simulate.fair_rates import compiled


@compiled
def update_rates(network: FlowNetwork, queue: EventQueue, now: float) -> None:
    """Computes the rates of flows that changes at time `now` affect, and queues their ends."""
    flows = _connected(network)
    _share(network, flows)
    for number in range(flows):
        flow = network.together[number]
        network.state[flow] = 0
        if abs(network.target[flow] - network.rate[flow]) <= SAME * network.rate[flow]:
            continue
        network.nbytes[flow] = max(network.nbytes[flow] - network.rate[flow] * (now - network.since[flow]), 0.0)
        network.since[flow], network.rate[flow] = now, network.target[flow]
        network.version[flow] += 1
        end = now + network.nbytes[flow] / network.rate[flow]
        push(queue, end, FLOW_END, flow, network.version[flow])
    for number in range(network.counts[CHANGED]):
        network.marked[network.changed[number]] = 0
    network.counts[CHANGED] = network.counts[RECENT] = 0


@compiled
def _connected(network: FlowNetwork) -> int:
    """Fills `together` with all flows that share limiting links with what changed, directly or through others, and
    `changed` with these links. Returns the number of flows."""
    most = len(network.link) // len(network.nbytes)
    flows = 0
    for number in range(network.counts[RECENT]):
        flow = network.recent[number]
        if not network.state[flow]:
            network.state[flow], network.together[flows] = 1, flow
            flows += 1
    seen_flows = seen_links = 0
    while seen_flows < flows or seen_links < network.counts[CHANGED]:
        while seen_links < network.counts[CHANGED]:
            crossing = network.first[network.changed[seen_links]]
            seen_links += 1
            while crossing != NONE:
                flow = crossing // most
                if not network.state[flow]:
                    network.state[flow], network.together[flows] = 1, flow
                    flows += 1
                crossing = network.following[crossing]
        while seen_flows < flows:
            start = network.together[seen_flows] * most
            seen_flows += 1
            for crossing in range(start, start + network.hops[start // most]):
                link = network.link[crossing]
                if not network.marked[link] and limits(network, link):
                    network.marked[link], network.changed[network.counts[CHANGED]] = 1, link
                    network.counts[CHANGED] += 1
    return flows


@compiled
def _share(network: FlowNetwork, flows: int) -> None:
    """Max-min fair `target` rates of the flows in `together` over the links in `changed`, by progressive filling."""
    _count_weights(network)
    unfixed, level = flows, 0.0
    while unfixed:
        level = max(level, _next_level(network, unfixed))
        kept = 0
        for number in range(unfixed):
            flow = network.together[number]
            if network.highest[flow] > level * (1 + SAME) and not _on_full_link(network, flow, level):
                network.together[number], network.together[kept] = network.together[kept], flow
                kept += 1
        for number in range(kept, unfixed):
            _fix(network, network.together[number], level)
        unfixed = kept


@compiled
def _count_weights(network: FlowNetwork) -> None:
    for number in range(network.counts[CHANGED]):
        link = network.changed[number]
        network.unused[link], network.pending[link] = network.capacity[link], network.crossings[link]
        weights, crossing = 0.0, network.first[link]
        while crossing != NONE:
            weights += network.weight[crossing]
            crossing = network.following[crossing]
        network.weights[link] = weights


@compiled
def _next_level(network: FlowNetwork, unfixed: int) -> float:
    """The lowest rate at which a link is full, or a flow as fast as it can be."""
    level = np.inf
    for number in range(network.counts[CHANGED]):
        link = network.changed[number]
        if network.pending[link]:
            level = min(level, network.unused[link] / network.weights[link])
    for number in range(unfixed):
        level = min(level, network.highest[network.together[number]])
    return level


@compiled
def _on_full_link(network: FlowNetwork, flow: int, level: float) -> bool:
    start = flow * (len(network.link) // len(network.nbytes))
    for crossing in range(start, start + network.hops[flow]):
        link = network.link[crossing]
        if network.marked[link] and network.unused[link] <= level * network.weights[link] * (1 + SAME):
            return True
    return False


@compiled
def _fix(network: FlowNetwork, flow: int, level: float) -> None:
    """The flow has this rate; the rest of its links is for others."""
    network.target[flow] = level
    start = flow * (len(network.link) // len(network.nbytes))
    for crossing in range(start, start + network.hops[flow]):
        link, weight = network.link[crossing], network.weight[crossing]
        if network.marked[link]:
            network.unused[link] = max(network.unused[link] - level * weight, 0.0)
            network.weights[link] -= weight
            network.pending[link] -= 1
