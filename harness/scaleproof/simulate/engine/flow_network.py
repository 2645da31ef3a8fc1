"""Flows over links in virtual time, for compiled code: which flows cross which links, as flows come and go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.engine.event_queue import FLOW_END, EventQueue, push
from scaleproof.simulate.fair_rates import compiled

SAME = 1e-12
"""Relative tolerance: rates that differ by less count as equal."""
NONE = -1
LIVE, CHANGED, RECENT, FREE = 0, 1, 2, 3
"""Places in `FlowNetwork.counts`."""


class FlowNetwork(NamedTuple):
    """Links and the flows on them. A flow crosses at most H links; crossing number h of flow f has index f * H + h.

    Per link: `capacity` (bytes/s), `wanted` (what its flows could use, bytes/s), `crossings` (number), `first` (index
    of a crossing, a linked list through `following` and `previous`), `unused`, `weights` and `pending` crossings
    (while rates are computed), `marked`. Per flow: `nbytes` left at time `since`, `rate`, `target` rate, `highest`
    rate, `owner`, `version`, `hops`, `state` (1 while its rate is computed). Per crossing: `link`, `weight`: capacity
    that one byte/s uses. Stacks: `free` flows, `recent` flows, `changed` links, `together`: flows whose rates are
    computed together. `counts`: live flows, changed links, recent flows, free flows."""

    capacity: np.ndarray
    wanted: np.ndarray
    crossings: np.ndarray
    first: np.ndarray
    unused: np.ndarray
    weights: np.ndarray
    pending: np.ndarray
    marked: np.ndarray
    changed: np.ndarray
    nbytes: np.ndarray
    rate: np.ndarray
    target: np.ndarray
    highest: np.ndarray
    since: np.ndarray
    owner: np.ndarray
    version: np.ndarray
    hops: np.ndarray
    state: np.ndarray
    free: np.ndarray
    recent: np.ndarray
    together: np.ndarray
    link: np.ndarray
    weight: np.ndarray
    following: np.ndarray
    previous: np.ndarray
    counts: np.ndarray


def new_network(capacities: np.ndarray, most_hops: int, flows: int) -> FlowNetwork:
    """Links without flows, with room for `flows` flows of at most `most_hops` links."""
    links, crossings = len(capacities), flows * most_hops

    def integers(count: int, value: int = 0) -> np.ndarray:
        return np.full(count, value, np.int64)

    def numbers(count: int) -> np.ndarray:
        return np.zeros(count)

    counts = integers(4)
    counts[FREE] = flows
    return FlowNetwork(
        capacity=np.ascontiguousarray(capacities, np.float64),
        wanted=numbers(links),
        crossings=integers(links),
        first=integers(links, NONE),
        unused=numbers(links),
        weights=numbers(links),
        pending=integers(links),
        marked=integers(links),
        changed=integers(links),
        nbytes=numbers(flows),
        rate=numbers(flows),
        target=numbers(flows),
        highest=numbers(flows),
        since=numbers(flows),
        owner=integers(flows),
        version=integers(flows),
        hops=integers(flows),
        state=integers(flows),
        free=np.arange(flows, dtype=np.int64)[::-1].copy(),
        recent=integers(flows),
        together=integers(flows),
        link=integers(crossings),
        weight=numbers(crossings),
        following=integers(crossings, NONE),
        previous=integers(crossings, NONE),
        counts=counts,
    )


def resized(network: FlowNetwork, most_hops: int, flows: int) -> FlowNetwork:
    """The same with room for more flows, or for longer routes."""
    larger = new_network(network.capacity, most_hops, flows)
    before, hops = len(network.nbytes), len(network.link) // len(network.nbytes)
    old = np.arange(len(network.link))
    place = old // hops * most_hops + old % hops

    def moved(crossings: np.ndarray) -> np.ndarray:
        return np.where(crossings == NONE, NONE, place[crossings])

    for name in ("wanted", "crossings", "unused", "weights", "pending", "marked", "changed"):
        getattr(larger, name)[:] = getattr(network, name)
    larger.first[:] = moved(network.first)
    for name in (
        "nbytes",
        "rate",
        "target",
        "highest",
        "since",
        "owner",
        "version",
        "hops",
        "state",
        "recent",
        "together",
    ):
        getattr(larger, name)[:before] = getattr(network, name)
    larger.link[place], larger.weight[place] = network.link, network.weight
    larger.following[place], larger.previous[place] = moved(network.following), moved(network.previous)
    larger.counts[:] = network.counts
    free = int(network.counts[FREE])
    larger.free[:free] = network.free[:free]
    larger.free[free : free + flows - before] = np.arange(before, flows)
    larger.counts[FREE] = free + flows - before
    return larger


@compiled
def start_flow(
    network: FlowNetwork,
    queue: EventQueue,
    now: float,
    nbytes: float,
    highest: float,
    route: np.ndarray,
    weights: np.ndarray,
    owner: int,
) -> None:
    """Starts a flow of at most `highest` bytes/s. The caller has made sure that there is room."""
    network.counts[FREE] -= 1
    network.counts[LIVE] += 1
    flow = network.free[network.counts[FREE]]
    most = len(network.link) // len(network.nbytes)
    for hop in range(len(route)):
        highest = min(highest, network.capacity[route[hop]] / weights[hop])
    network.nbytes[flow], network.highest[flow], network.owner[flow] = nbytes, highest, owner
    network.since[flow], network.rate[flow], network.hops[flow] = now, 0.0, len(route)
    limited = False
    for hop in range(len(route)):
        limited |= _join(network, flow * most + hop, route[hop], weights[hop], highest)
    network.version[flow] += 1
    if limited:
        network.recent[network.counts[RECENT]] = flow
        network.counts[RECENT] += 1
    else:
        network.rate[flow] = highest
        push(queue, now + nbytes / highest, FLOW_END, flow, network.version[flow])


@compiled
def _join(network: FlowNetwork, crossing: int, link: int, weight: float, highest: float) -> bool:
    """Puts a crossing on its link; whether the link now limits its flows."""
    network.link[crossing], network.weight[crossing] = link, weight
    ahead = network.first[link]
    network.following[crossing], network.previous[crossing] = ahead, NONE
    if ahead != NONE:
        network.previous[ahead] = crossing
    network.first[link] = crossing
    network.crossings[link] += 1
    network.wanted[link] += weight * highest
    return limits(network, link)


@compiled
def limits(network: FlowNetwork, link: int) -> bool:
    """Whether the flows of a link could use more than it has."""
    return bool(
        network.crossings[link] > 1
        and network.wanted[link] > network.capacity[link] * (1 + SAME * network.crossings[link])
    )


@compiled
def end_flow(network: FlowNetwork, flow: int) -> None:
    """Takes a flow off its links."""
    most = len(network.link) // len(network.nbytes)
    for crossing in range(flow * most, flow * most + network.hops[flow]):
        link = network.link[crossing]
        if limits(network, link) and not network.marked[link]:
            network.marked[link] = 1
            network.changed[network.counts[CHANGED]] = link
            network.counts[CHANGED] += 1
        before, after = network.previous[crossing], network.following[crossing]
        if before == NONE:
            network.first[link] = after
        else:
            network.following[before] = after
        if after != NONE:
            network.previous[after] = before
        network.crossings[link] -= 1
        network.wanted[link] -= network.weight[crossing] * network.highest[flow]
        if not network.crossings[link]:
            network.wanted[link] = 0.0
    network.version[flow] += 1
    network.counts[LIVE] -= 1
    network.free[network.counts[FREE]] = flow
    network.counts[FREE] += 1
