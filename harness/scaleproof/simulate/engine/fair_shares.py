"""Max-min fair rates of flows (Bertsekas and Gallager, Data Networks, section 6.5), for compiled code. Rates are
max-min fair exactly if each flow is as fast as it can be, or crosses a full link on which no flow is faster, its
bottleneck. So the flows that a link limits are equally fast: their rate is the link's level.

When flows come or go, a sweep over the links that this concerns, the lowest level first, finds the rates that change. A
flow is opened, that is its rate is to be found, when it is new, when its bottleneck gets another level, or when a link
that it crosses gets a level below its rate. Either happens before the sweep has passed its old rate, so what the sweep
has passed stays. A link on which all flows together could not use the capacity limits none of them.

The small functions are one function for the machine: a call with all tables would take longer than what they do."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.flow_network import (
    CHANGED,
    FIXED,
    FULL,
    HOPS,
    LISTED,
    NONE,
    OPEN,
    OPENED,
    RECENT,
    SAME,
    SETTLED,
    TO_FIND,
    UNSETTLED,
    VISITED,
    WAITING,
    FlowNetwork,
    limits,
)
from scaleproof.simulate.engine.keyed_heap import ABSENT, clear, put, take_first

STRIDE = 2.0
"""Only links that are full below this many times the lowest level stand in the heap; most of the others are done with
before the sweep comes to them."""


@compiled
def update_rates(network: FlowNetwork, now: float) -> None:
    """Computes the rates of flows that changes at time `now` affect, and when these flows end."""
    counts, links = network.counts, network.links
    for place in range(counts[CHANGED]):
        on = network.changed[place]
        links[on].state = 0
        if links[on].limited:
            _visit(network, on, -1.0)
    for place in range(counts[RECENT]):
        _list_to_open(network, network.recent[place])
    _sweep(network)
    for place in range(counts[OPENED]):
        _change(network, network.opened[place], now)
    for place in range(counts[VISITED]):
        links[network.visited[place]].state = 0
    counts[CHANGED] = counts[RECENT] = counts[OPENED] = counts[VISITED] = 0


@inlined
def _change(network: FlowNetwork, number: int, now: float) -> None:
    """The flow has its computed rate from now on."""
    flow = network.flows[number]
    flow.state = 0
    if flow.target != flow.rate:
        flow.nbytes = max(flow.nbytes - flow.rate * (now - flow.since), 0.0)
        flow.since, flow.rate = now, flow.target
        put(network.ends, number, now + flow.nbytes / flow.rate)


@inlined
def _sweep(network: FlowNetwork) -> None:
    """Finds the `target` of all opened flows: the link that is full first, or the flow that is as fast as it can be,
    comes first."""
    levels, counts, reach, opened = network.levels, network.counts, -1.0, 0
    while True:
        while opened < counts[OPENED]:
            _open(network, network.opened[opened], reach)
            opened += 1
        if not counts[OPEN] and not counts[UNSETTLED]:
            break
        if not levels.size[0]:
            reach = _further(network)
            continue
        counts[LISTED], item, rate = 0, levels.items[0], levels.keys[levels.items[0]]
        if item < len(network.links):
            rate = _settle(network, item, rate, reach)
        else:
            take_first(levels)
            item -= len(network.links)
            if network.flows[item].state == TO_FIND:
                network.listed[0], counts[LISTED], item = item, 1, NONE
        for place in range(counts[LISTED]):
            _fix(network, network.listed[place], rate, item)
    clear(levels)


@inlined
def _full_at(link: np.record) -> float:
    """The level at which a link is full if the flows that it limits and the open ones have it."""
    if not limits(link):
        return np.inf
    return max(link.capacity - link.used + link.level * link.bound, 0.0) / (link.bound + link.weights)


@inlined
def _comes_at(link: np.record) -> float:
    """Where the sweep comes to a link: at the level at which it is full, or at the one that it has, if that is
    lower."""
    level = _full_at(link)
    return min(level, link.level) if link.limited else level


@inlined
def _visit(network: FlowNetwork, on: int, reach: float) -> None:
    """The sweep comes to a link, as rates of flows on it change."""
    link, levels = network.links[on], network.levels
    if not link.state:
        link.state = WAITING
        network.visited[network.counts[VISITED]] = on
        network.counts[VISITED] += 1
        if link.limited:
            link.unsettled = 1
            network.counts[UNSETTLED] += 1
    if reach > 0:
        level = _comes_at(link)
        if level <= reach and (levels.places[on] == ABSENT or level < levels.keys[on]):
            put(levels, on, level)


@compiled
def _further(network: FlowNetwork) -> float:
    """Puts the links with the lowest levels into the empty heap. Returns the level up to which they are there."""
    lowest, links, counts = np.inf, network.links, network.counts
    for place in range(counts[VISITED]):
        link = links[network.visited[place]]
        if link.open or link.limited and link.state == WAITING:
            lowest = min(lowest, _comes_at(link))
        else:
            counts[UNSETTLED] -= link.unsettled
            link.unsettled = 0
    for place in range(counts[VISITED]):
        on = network.visited[place]
        if links[on].open or links[on].limited and links[on].state == WAITING:
            level = _comes_at(links[on])
            if level <= STRIDE * lowest:
                put(network.levels, on, level)
    return STRIDE * lowest


@inlined
def _list_to_open(network: FlowNetwork, number: int) -> None:
    network.flows[number].state = TO_FIND
    network.opened[network.counts[OPENED]] = number
    network.counts[OPENED] += 1


@inlined
def _open(network: FlowNetwork, number: int, reach: float) -> None:
    """The rate of a flow is to be found."""
    flow, first, limited = network.flows[number], number * network.counts[HOPS], False
    network.counts[OPEN] += 1
    for place in range(first, first + flow.hops):
        crossing = network.crossings[place]
        link = network.links[crossing.link]
        link.used -= crossing.weight * flow.target
        if crossing.link == flow.bottleneck:
            link.limited -= 1
            link.bound = link.bound - crossing.weight if link.limited else 0.0
        if limits(link):
            limited = True
            link.open += 1
            link.weights += crossing.weight
            _visit(network, crossing.link, reach)
    flow.bottleneck = NONE
    if not limited:
        put(network.levels, len(network.links) + number, flow.highest)


@inlined
def _fix(network: FlowNetwork, number: int, rate: float, bottleneck: int) -> None:
    """The flow has this rate; the rest of its links is for others."""
    flow, first = network.flows[number], number * network.counts[HOPS]
    if bottleneck == NONE:
        rate = flow.highest
    if abs(rate - flow.rate) <= SAME * flow.rate:
        rate = flow.rate
    flow.target, flow.state, flow.bottleneck = rate, FIXED, bottleneck
    network.counts[OPEN] -= 1
    for place in range(first, first + flow.hops):
        crossing = network.crossings[place]
        link = network.links[crossing.link]
        link.used += crossing.weight * rate
        if limits(link):
            link.open -= 1
            link.weights = link.weights - crossing.weight if link.open else 0.0
        if crossing.link == bottleneck:
            link.limited += 1
            link.bound += crossing.weight


@inlined
def _settle(network: FlowNetwork, on: int, lowest: float, reach: float) -> float:
    """Settles a link when the sweep is at the level `lowest`: lists its open flows and returns their rate. Until that
    is done the link stands in the heap, behind what it waits for, or among those beyond its `reach`."""
    link, levels = network.links[on], network.levels
    level, settled = _full_at(link), link.state == SETTLED
    if settled or link.limited and abs(level - link.level) <= FULL * link.level:
        level, settled = link.level, True
    if link.open or link.limited and link.state == WAITING:
        comes_at = min(level, link.level) if link.limited else level
        if comes_at > reach:
            take_first(levels)
            return level
        if comes_at > lowest * (1 + SAME):
            put(levels, on, comes_at)
            return level
        if link.limited and not settled:
            _list_limited_to_open(network, on)
            return level
        if link.open and not _list(network, on, level):
            put(levels, on, level)  # behind what comes first, also where that is nearer to `lowest` than rounding
            return level
        link.level, link.state = level, SETTLED
    take_first(levels)
    network.counts[UNSETTLED] -= link.unsettled
    link.unsettled = 0
    return level


@inlined
def _list_limited_to_open(network: FlowNetwork, on: int) -> None:
    """The link gets another level."""
    number = network.links[on].first
    while number != NONE:
        crossing = network.crossings[number]
        if network.flows[crossing.flow].bottleneck == on:
            _list_to_open(network, crossing.flow)
        number = crossing.following


@inlined
def _list(network: FlowNetwork, on: int, level: float) -> bool:
    """Lists the open flows of a link. False: others come first, which are flows that cannot have its level, and faster
    ones, which are to be opened. What the others use is added up anew."""
    link, ready, used, number = network.links[on], True, 0.0, network.links[on].first
    while number != NONE:
        crossing = network.crossings[number]
        flow = network.flows[crossing.flow]
        if flow.state == TO_FIND:
            network.listed[network.counts[LISTED]] = crossing.flow
            network.counts[LISTED] += 1
            if flow.highest < level:
                put(network.levels, len(network.links) + crossing.flow, flow.highest)
                ready = False
        elif not flow.state and flow.target > level * (1 + FULL):
            _list_to_open(network, crossing.flow)
            ready = False
        else:
            used += crossing.weight * flow.target
        number = crossing.following
    if ready:
        link.used = used
    else:
        network.counts[LISTED] = 0
    return ready
