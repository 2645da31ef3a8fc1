"""The compiled inner loops of the fluid engine: rates of flows that share links, and their progress until the next
event. Import this module only where flows are simulated: importing numba takes half a second."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import allocating

SAME = 1e-9
"""Relative tolerance: rates and end times that differ by less count as equal, so that equal flows end together."""


@allocating
def max_min_rates(routes: np.ndarray, capacities: np.ndarray, caps: np.ndarray) -> np.ndarray:
    """Max-min fair rates: no flow can get more without taking from a flow that has less (Bertsekas and Gallager, Data
    Networks, section 6.5).

    `routes`: a row per flow with the numbers of its links, padded with len(capacities); `caps`: the highest rate of
    each flow."""
    flows, hops = routes.shape
    links = len(capacities)
    rates = np.full(flows, np.inf)
    unused = capacities.copy()
    counts, freed = np.zeros(links + 1, np.int64), np.zeros(links + 1, np.int64)
    for flow in range(flows):
        for hop in range(hops):
            counts[routes[flow, hop]] += 1
    unfixed, remaining = np.arange(flows), flows
    shares = np.empty(flows)
    while remaining:
        lowest = np.inf
        for index in range(remaining):
            flow = unfixed[index]
            share = caps[flow]
            for hop in range(hops):
                link = routes[flow, hop]
                if link < links:
                    share = min(share, unused[link] / counts[link])
            shares[index] = share
            lowest = min(lowest, share)
        if lowest == np.inf:
            break
        still_unfixed = 0
        for index in range(remaining):
            flow = unfixed[index]
            if shares[index] <= lowest * (1 + SAME):
                rates[flow] = lowest
                for hop in range(hops):
                    freed[routes[flow, hop]] += 1
            else:
                unfixed[still_unfixed] = flow
                still_unfixed += 1
        remaining = still_unfixed
        for link in range(links):
            if freed[link]:
                if unused[link] != np.inf:
                    unused[link] = max(unused[link] - freed[link] * lowest, 0.0)
                counts[link] -= freed[link]
        freed[:] = 0
    return rates


@allocating
def advance(remaining: np.ndarray, rates: np.ndarray, timer: float) -> tuple[float, np.ndarray]:
    """Advances all flows until the first one ends, at most by `timer` s. Returns the time that passed in s, and which
    flows ended. Changes `remaining`, the bytes left of each flow."""
    first = np.inf
    for flow in range(len(remaining)):
        first = min(first, remaining[flow] / rates[flow])
    step = min(first, timer)
    ended = np.zeros(len(remaining), np.bool_)
    for flow in range(len(remaining)):
        ended[flow] = first <= timer and remaining[flow] / rates[flow] <= step * (1 + SAME)
        # On links without a rate limit everything arrives at once.
        remaining[flow] = 0.0 if rates[flow] == np.inf else remaining[flow] - rates[flow] * step
    return step, ended
