"""Flows over links in virtual time, for compiled code: which flows cross which links, as flows come and go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.growing import more_rows, new_rows, row_type
from scaleproof.simulate.engine.keyed_heap import KeyedHeap, larger_heap, new_heap, put

SAME = 1e-12
"""Relative tolerance: rates that differ by less count as equal."""
FULL = 1e-11
"""A link of which at most this share is unused is full; flows on it whose rates differ by less are equally fast."""
NONE = -1
CHANGED, RECENT, FREE, HOPS, OPENED, LISTED, VISITED, OPEN, UNSETTLED = range(9)
"""Places in `FlowNetwork.counts`: changed links, recent flows, free flows, H (see there); while rates are computed:
opened flows, listed flows, visited links, open flows, unsettled links."""
LINKS = row_type("crossings first state limited open unsettled", "capacity wanted used level bound weights")
"""`capacity`, `wanted` (what its flows could use) and `used` (by flows that are not open) in bytes/s; `crossings`:
number, the `first` of them (a list through `following` and `previous`); `limited`: number of flows whose bottleneck it
is, `bound` the weights of these and `level` their rate. While rates are computed: `open`, the number of open flows, and
their `weights`; `unsettled`: 1 while it limits flows that perhaps get another rate."""
LEFT, WAITING, SETTLED = 1, 2, 3
"""States of a link: a flow has left it since rates were computed; while they are computed, rates on it may change, or
are found. 0: none of them."""
TO_FIND, FIXED = 1, 2
"""States of a flow while rates are computed: its rate is open, that is to be found; it is found. 0 at other times."""
FLOWS = row_type("owner hops state bottleneck", "nbytes since rate target highest")
"""`nbytes` left at time `since`; `rate`, `target` rate, `highest` rate in bytes/s; the link that is the `bottleneck`
(NONE: the flow is as fast as it can be)."""
CROSSINGS = row_type("link flow following previous", "weight")
"""A flow on a link. `weight`: capacity of the link that one byte/s uses."""


class FlowNetwork(NamedTuple):
    """Links and the flows on them. A flow crosses at most H links; crossing number h of flow f is row f * H + h. Stacks
    of numbers: `free` flows, `recent` flows, `changed` links, which flows have left; while rates are computed, `opened`
    flows, `visited` links, and `listed` flows, which get one rate.
    `ends`: when flows end. `levels`, while rates are computed: rates at which links are full and, from item
    number len(links) on, flows are as fast as they can be."""

    links: np.recarray
    flows: np.recarray
    crossings: np.recarray
    free: np.ndarray
    recent: np.ndarray
    opened: np.ndarray
    listed: np.ndarray
    changed: np.ndarray
    visited: np.ndarray
    counts: np.ndarray
    ends: KeyedHeap
    levels: KeyedHeap


def new_network(capacities: np.ndarray, most_hops: int, flows: int) -> FlowNetwork:
    """Links without flows, with room for `flows` flows of at most `most_hops` links."""
    links, counts = new_rows(len(capacities), LINKS), np.zeros(9, np.int64)
    links.capacity, links.first = capacities, NONE
    counts[FREE], counts[HOPS] = flows, most_hops
    crossings = new_rows(flows * most_hops, CROSSINGS)
    crossings.flow = np.arange(flows).repeat(most_hops)
    return FlowNetwork(
        links,
        new_rows(flows, FLOWS),
        crossings,
        free=np.arange(flows, dtype=np.int64)[::-1].copy(),
        recent=np.zeros(flows, np.int64),
        opened=np.zeros(flows, np.int64),
        listed=np.zeros(flows, np.int64),
        changed=np.zeros(len(capacities), np.int64),
        visited=np.zeros(len(capacities), np.int64),
        counts=counts,
        ends=new_heap(flows),
        levels=new_heap(len(capacities) + flows),
    )


def resized(network: FlowNetwork, most_hops: int, flows: int) -> FlowNetwork:
    """The same with room for more flows, or for longer routes."""
    before, free = len(network.flows), int(network.counts[FREE])
    old = np.arange(len(network.crossings))
    hops = int(network.counts[HOPS])
    place = old // hops * most_hops + old % hops

    def moved(crossings: np.ndarray) -> np.ndarray:
        return np.where(crossings == NONE, NONE, place[crossings])

    crossings = new_rows(flows * most_hops, CROSSINGS)
    crossings[place] = network.crossings
    crossings.flow = np.arange(flows).repeat(most_hops)
    crossings.following[place] = moved(network.crossings.following)
    crossings.previous[place] = moved(network.crossings.previous)
    network.links.first = moved(network.links.first)
    network.counts[FREE], network.counts[HOPS] = free + flows - before, most_hops
    return FlowNetwork(
        network.links,
        more_rows(network.flows, flows),
        crossings,
        free=np.concatenate([network.free[:free], np.arange(before, flows), np.zeros(before - free, np.int64)]),
        recent=np.concatenate([network.recent, np.zeros(flows - before, np.int64)]),
        opened=np.zeros(flows, np.int64),
        listed=np.zeros(flows, np.int64),
        changed=network.changed,
        visited=network.visited,
        counts=network.counts,
        ends=larger_heap(network.ends, flows),
        levels=new_heap(len(network.links) + flows),
    )


@compiled
def start_flow(
    network: FlowNetwork,
    now: float,
    nbytes: float,
    highest: float,
    route: np.ndarray,
    weights: np.ndarray,
    owner: int,
) -> None:
    """Starts a flow of at most `highest` bytes/s. The caller has made sure that there is room."""
    network.counts[FREE] -= 1
    number = network.free[network.counts[FREE]]
    first = number * network.counts[HOPS]
    for hop in range(len(route)):
        highest = min(highest, network.links[route[hop]].capacity / weights[hop])
    limited = False
    for hop in range(len(route)):
        limited |= _join(network, first + hop, route[hop], weights[hop], highest)
    flow = network.flows[number]
    flow.nbytes, flow.highest, flow.owner, flow.since = nbytes, highest, owner, now
    flow.hops, flow.bottleneck, flow.rate, flow.target = len(route), NONE, 0.0, 0.0
    if limited:
        network.recent[network.counts[RECENT]] = number
        network.counts[RECENT] += 1
        return
    flow.rate = flow.target = highest
    for hop in range(len(route)):
        network.links[route[hop]].used += weights[hop] * highest
    put(network.ends, number, now + nbytes / highest)


@inlined
def _join(network: FlowNetwork, number: int, on: int, weight: float, highest: float) -> bool:
    """Puts a crossing on a link; whether the link now limits its flows."""
    crossing, link = network.crossings[number], network.links[on]
    crossing.link, crossing.weight, crossing.following, crossing.previous = on, weight, link.first, NONE
    if link.first != NONE:
        network.crossings[link.first].previous = number
    link.first = number
    link.crossings += 1
    link.wanted += weight * highest
    return limits(link)


@inlined
def limits(link: np.record) -> bool:
    """Whether the flows of a link could use more than it has."""
    return bool(link.crossings > 1 and link.wanted > link.capacity * (1 + SAME * link.crossings))


@compiled
def end_flow(network: FlowNetwork, number: int) -> None:
    """Takes a flow, which has ended, off its links."""
    flow = network.flows[number]
    first = number * network.counts[HOPS]
    for place in range(first, first + flow.hops):
        crossing = network.crossings[place]
        link = network.links[crossing.link]
        if crossing.previous == NONE:
            link.first = crossing.following
        else:
            network.crossings[crossing.previous].following = crossing.following
        if crossing.following != NONE:
            network.crossings[crossing.following].previous = crossing.previous
        link.crossings -= 1
        link.wanted = link.wanted - crossing.weight * flow.highest if link.crossings else 0.0
        link.used = link.used - crossing.weight * flow.rate if link.crossings else 0.0
        if crossing.link == flow.bottleneck:
            link.limited -= 1
            link.bound = link.bound - crossing.weight if link.limited else 0.0
        if link.limited and not link.state:
            link.state = LEFT
            network.changed[network.counts[CHANGED]] = crossing.link
            network.counts[CHANGED] += 1
    network.free[network.counts[FREE]] = number
    network.counts[FREE] += 1
