"""Max-min fair rates of flows (Bertsekas and Gallager, Data Networks, section 6.5), for compiled code. Rates are
max-min fair exactly if each flow is as fast as it can be, or crosses a full link on which no flow is faster, its
bottleneck. So when flows come or go, only some rates are computed anew, with all others held; then whoever lost its
bottleneck by that, or is faster than a computed flow on the bottleneck of that, is computed too, until there is none.
A link on which all flows together could not use the capacity limits none of them."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.flow_network import (
    BUSY,
    CHANGED,
    FIXED,
    FULL,
    HOPS,
    NONE,
    RECENT,
    SAME,
    SHARING,
    FlowNetwork,
    limits,
)
from scaleproof.simulate.engine.keyed_heap import put, take_first


@compiled
def update_rates(network: FlowNetwork, now: float) -> None:
    """Computes the rates of flows that changes at time `now` affect, and when these flows end."""
    flows, links = _changed_flows(network), 0
    while True:
        links = _busy_links(network, flows, links)
        _share(network, flows, links)
        more = _add_affected(network, flows, links)
        if more == flows:
            break
        flows = more
    for place in range(flows):
        _change(network, network.together[place], now)
    for place in range(links):
        network.links[network.busy[place]].state = 0


@inlined
def _change(network: FlowNetwork, number: int, now: float) -> None:
    """The flow has its computed rate from now on."""
    flow = network.flows[number]
    flow.state = 0
    if abs(flow.target - flow.rate) > SAME * flow.rate:
        flow.nbytes = max(flow.nbytes - flow.rate * (now - flow.since), 0.0)
        flow.since, flow.rate = now, flow.target
        put(network.ends, number, now + flow.nbytes / flow.rate)


@compiled
def _changed_flows(network: FlowNetwork) -> int:
    """Puts the flows into `together` that are new, or whose bottleneck another flow shares or has left. Returns how
    many."""
    flows, most = 0, network.counts[HOPS]
    for place in range(network.counts[CHANGED]):
        on = network.changed[place]
        network.links[on].state = 0
        flows = _gather_limited(network, on, flows)
    for place in range(network.counts[RECENT]):
        number = network.recent[place]
        flows = _gather(network, number, flows)
        for crossing in range(number * most, number * most + network.flows[number].hops):
            flows = _gather_limited(network, network.crossings[crossing].link, flows)
    network.counts[CHANGED] = network.counts[RECENT] = 0
    return flows


@inlined
def _gather(network: FlowNetwork, number: int, flows: int) -> int:
    """Puts a flow into `together`, which holds `flows`, if it is not there. Returns how many it holds then."""
    flow = network.flows[number]
    if flow.state:
        return flows
    flow.state, network.together[flows] = SHARING, number
    return flows + 1


@inlined
def _gather_limited(network: FlowNetwork, on: int, flows: int) -> int:
    """Puts the flows whose bottleneck is a link into `together`."""
    number = network.links[on].first
    while number != NONE:
        crossing = network.crossings[number]
        if network.flows[crossing.flow].bottleneck == on:
            flows = _gather(network, crossing.flow, flows)
        number = crossing.following
    return flows


@compiled
def _busy_links(network: FlowNetwork, flows: int, links: int) -> int:
    """Fills `busy`, which holds `links`, with all links that limit the flows `together[:flows]`. Returns how many. A
    flow that none limits is as fast as it can be."""
    most = network.counts[HOPS]
    for place in range(flows):
        number = network.together[place]
        flow = network.flows[number]
        flow.state, flow.target, flow.bottleneck = FIXED, flow.highest, NONE
        for crossing in range(number * most, number * most + flow.hops):
            on = network.crossings[crossing].link
            link = network.links[on]
            if link.state == BUSY or limits(link):
                flow.state = SHARING
                if link.state != BUSY:
                    link.state, network.busy[links] = BUSY, on
                    links += 1
    return links


@compiled
def _share(network: FlowNetwork, flows: int, links: int) -> None:
    """Max-min fair `target` rates of the flows `together[:flows]` over what the others leave of `busy[:links]`, by
    progressive filling: the link that is full first, or the flow that is as fast as it can be, comes first. What a
    link has left per weight never falls while others are filled."""
    levels, unfixed, level = network.levels, _queue_levels(network, flows, links), 0.0
    while unfixed:
        item = levels.items[0]
        lowest = levels.keys[item]
        if item >= len(network.links):
            take_first(levels)
            number = item - len(network.links)
            _fix(network, number, network.flows[number].highest, NONE)
            unfixed -= 1
            continue
        link = network.links[item]
        if not link.pending:
            take_first(levels)
        elif link.unused > lowest * link.weights * (1 + SAME):
            put(levels, item, link.unused / link.weights)
        elif link.highest >= lowest or not _queue_slower(network, item, lowest):
            if abs(lowest - level) > SAME * level:
                level = lowest
            take_first(levels)
            unfixed -= _fill(network, item, level)
    while levels.size[0]:
        take_first(levels)


@compiled
def _queue_levels(network: FlowNetwork, flows: int, links: int) -> int:
    """The rate at which each link is full if all flows to be computed have it. Returns how many these are."""
    for place in range(links):
        on = network.busy[place]
        link = network.links[on]
        unused, weights, pending, highest, number = link.capacity, 0.0, 0, np.inf, link.first
        while number != NONE:
            crossing = network.crossings[number]
            flow = network.flows[crossing.flow]
            if flow.state:
                weights += crossing.weight
                pending += 1
                highest = min(highest, flow.highest)
            else:
                unused -= crossing.weight * flow.rate
            number = crossing.following
        link.unused, link.weights, link.pending, link.highest = max(unused, 0.0), weights, pending, highest
        link.level = NONE
        put(network.levels, on, link.unused / weights)
    unfixed = 0
    for place in range(flows):
        unfixed += network.flows[network.together[place]].state == SHARING
    return unfixed


@compiled
def _queue_slower(network: FlowNetwork, on: int, level: float) -> int:
    """Queues the flows of a link that cannot be as fast as its level. Returns how many."""
    number, slower = network.links[on].first, 0
    while number != NONE:
        crossing = network.crossings[number]
        flow = network.flows[crossing.flow]
        if flow.state == SHARING and flow.highest < level:
            put(network.levels, len(network.links) + crossing.flow, flow.highest)
            slower += 1
        number = crossing.following
    return slower


@compiled
def _fill(network: FlowNetwork, on: int, level: float) -> int:
    """Gives all flows of a link that are left their rate. Returns how many."""
    link = network.links[on]
    link.level, fixed, number = level, 0, link.first
    while number != NONE:
        crossing = network.crossings[number]
        if network.flows[crossing.flow].state == SHARING:
            _fix(network, crossing.flow, level, on)
            fixed += 1
        number = crossing.following
    return fixed


@inlined
def _fix(network: FlowNetwork, number: int, rate: float, bottleneck: int) -> None:
    """The flow has this rate; the rest of its links is for others."""
    flow = network.flows[number]
    flow.target, flow.state, flow.bottleneck = rate, FIXED, bottleneck
    start = number * network.counts[HOPS]
    for place in range(start, start + flow.hops):
        crossing = network.crossings[place]
        link = network.links[crossing.link]
        if link.state == BUSY:
            link.unused = max(link.unused - rate * crossing.weight, 0.0)
            link.weights -= crossing.weight
            link.pending -= 1


@compiled
def _add_affected(network: FlowNetwork, flows: int, links: int) -> int:
    """Adds the flows to `together` whose rates the computed ones of `together[:flows]` make unfair, with all that have
    the same bottleneck. Returns how many there are then."""
    for place in range(links):
        on = network.busy[place]
        link = network.links[on]
        most, least = _limits_of_others(network, on)
        number = link.first if most < np.inf or least > 0 else NONE
        while number != NONE:
            crossing = network.crossings[number]
            flow = network.flows[crossing.flow]
            if not flow.state and (flow.rate > most or (flow.bottleneck == on and flow.rate < least)):
                bottleneck = flow.bottleneck
                flows = _gather(network, crossing.flow, flows)
                if bottleneck != NONE:
                    flows = _gather_limited(network, bottleneck, flows)
            number = crossing.following
    return flows


@inlined
def _limits_of_others(network: FlowNetwork, on: int) -> tuple[float, float]:
    """The fastest that a held flow of a link may be, and the slowest where the link is its bottleneck; infinite and 0
    where none is beyond them."""
    link = network.links[on]
    fastest, others, slowest, number = 0.0, 0.0, np.inf, link.first
    while number != NONE:
        crossing = network.crossings[number]
        flow = network.flows[crossing.flow]
        if flow.state:
            fastest = max(fastest, flow.target)
        else:
            others = max(others, flow.rate)
            if flow.bottleneck == on:
                slowest = min(slowest, flow.rate)
        number = crossing.following
    most = link.level * (1 + FULL) if link.level != NONE else np.inf
    least = np.inf if link.unused > FULL * link.capacity else max(fastest, others) * (1 - FULL)
    return (most if others > most else np.inf), (least if slowest < least else 0.0)
