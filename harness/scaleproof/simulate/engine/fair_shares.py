"""Max-min fair rates of flows (Bertsekas and Gallager, Data Networks, section 6.5), for compiled code. When a flow
comes or goes, only flows are computed anew that share a busy link with it, directly or through others. A link on which
all flows together could not use the capacity limits none of them, and connects none."""

from __future__ import annotations

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.event_queue import FLOW_END, EventQueue, pop, push
from scaleproof.simulate.engine.flow_network import (
    BUSY,
    CHANGED,
    FIXED,
    NONE,
    RECENT,
    SAME,
    SHARING,
    FlowNetwork,
    limits,
)

OF_LINK, OF_FLOW = 0, 1
"""Kinds of levels."""


@compiled
def update_rates(network: FlowNetwork, queue: EventQueue, now: float) -> None:
    """Computes the rates of flows that changes at time `now` affect, and queues their ends."""
    most = len(network.crossings) // len(network.flows)
    done = 0
    for place in range(network.counts[RECENT]):
        gathered = _gather(network, network.recent[place], done)
        done = _update_connected(network, queue, now, done, gathered)
    for place in range(network.counts[CHANGED]):
        link = network.links[network.changed[place]]
        link.state, gathered, crossing = 0, done, link.first
        while crossing != NONE:
            gathered = _gather(network, crossing // most, gathered)
            crossing = network.crossings[crossing].following
        done = _update_connected(network, queue, now, done, gathered)
    for place in range(done):
        network.flows[network.together[place]].state = 0
    network.counts[CHANGED] = network.counts[RECENT] = 0


@inlined
def _gather(network: FlowNetwork, number: int, flows: int) -> int:
    """Puts a flow into `together`, which holds `flows`, if it is not there. Returns how many it holds then."""
    flow = network.flows[number]
    if flow.state:
        return flows
    flow.state, network.together[flows] = SHARING, number
    return flows + 1


@compiled
def _update_connected(network: FlowNetwork, queue: EventQueue, now: float, first: int, last: int) -> int:
    """Rates of the flows `together[first:last]` and of all that share limiting links with them, directly or through
    others. Returns how many flows `together` holds then."""
    if first == last:
        return first
    last, links = _connected(network, first, last)
    _share(network, first, last, links)
    for place in range(first, last):
        number = network.together[place]
        flow = network.flows[number]
        if abs(flow.target - flow.rate) <= SAME * flow.rate:
            continue
        flow.nbytes = max(flow.nbytes - flow.rate * (now - flow.since), 0.0)
        flow.since, flow.rate = now, flow.target
        flow.version += 1
        push(queue, now + flow.nbytes / flow.rate, FLOW_END, number, flow.version)
    for place in range(links):
        network.links[network.busy[place]].state = 0
    return last


@compiled
def _connected(network: FlowNetwork, first: int, last: int) -> tuple[int, int]:
    """Adds all flows that are connected with `together[first:last]` to it, and fills `busy` with the links that connect
    them. Returns how many `together` and `busy` hold."""
    most = len(network.crossings) // len(network.flows)
    links = 0
    while first < last:
        number = network.together[first]
        first += 1
        for place in range(number * most, number * most + network.flows[number].hops):
            on = network.crossings[place].link
            link = network.links[on]
            if link.state == BUSY or not limits(link):
                continue
            link.state, network.busy[links] = BUSY, on
            links += 1
            crossing = link.first
            while crossing != NONE:
                last = _gather(network, crossing // most, last)
                crossing = network.crossings[crossing].following
    return last, links


@compiled
def _share(network: FlowNetwork, first: int, last: int, links: int) -> None:
    """Max-min fair `target` rates of the flows `together[first:last]` over `busy[:links]`, by progressive filling: the
    link that is full first, or the flow that is as fast as it can be, comes first. What a link has left per weight
    never falls while others are filled, so that a link taken too early is put back."""
    _queue_levels(network, first, last, links)
    unfixed, level = last - first, 0.0
    while unfixed:
        lowest, kind, item, _ = pop(network.levels)
        if kind == OF_LINK:
            link = network.links[item]
            if not link.pending:
                continue
            if link.unused > lowest * link.weights * (1 + SAME):
                push(network.levels, link.unused / link.weights, OF_LINK, item, 0)
                continue
        elif network.flows[item].state == FIXED:
            continue
        if lowest > level * (1 + SAME):
            level = lowest
        if kind == OF_LINK:
            unfixed -= _fill(network, network.links[item].first, level)
        else:
            _fix(network, item, level)
            unfixed -= 1
    network.levels.size[0] = 0


@compiled
def _queue_levels(network: FlowNetwork, first: int, last: int, links: int) -> None:
    """The rate at which each link is full if all its flows have it, and the highest of each flow."""
    for place in range(links):
        on = network.busy[place]
        link = network.links[on]
        link.unused, link.pending, link.weights = link.capacity, link.crossings, 0.0
        number = link.first
        while number != NONE:
            crossing = network.crossings[number]
            link.weights += crossing.weight
            number = crossing.following
        push(network.levels, link.unused / link.weights, OF_LINK, on, 0)
    for place in range(first, last):
        number = network.together[place]
        push(network.levels, network.flows[number].highest, OF_FLOW, number, 0)


@compiled
def _fill(network: FlowNetwork, crossing: int, level: float) -> int:
    """Gives all flows of a full link their rate, from its first crossing on. Returns how many had none."""
    most, fixed = len(network.crossings) // len(network.flows), 0
    while crossing != NONE:
        if network.flows[crossing // most].state != FIXED:
            _fix(network, crossing // most, level)
            fixed += 1
        crossing = network.crossings[crossing].following
    return fixed


@compiled
def _fix(network: FlowNetwork, number: int, level: float) -> None:
    """The flow has this rate; the rest of its links is for others."""
    flow = network.flows[number]
    flow.target, flow.state = level, FIXED
    start = number * (len(network.crossings) // len(network.flows))
    for place in range(start, start + flow.hops):
        crossing = network.crossings[place]
        link = network.links[crossing.link]
        if link.state == BUSY:
            link.unused = max(link.unused - level * crossing.weight, 0.0)
            link.weights -= crossing.weight
            link.pending -= 1
