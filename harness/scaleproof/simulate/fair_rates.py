"""What flows over shared links get, and how far they come until the next moment: the inner loops of the fluid engine,
compiled. Import this only where flows are simulated: numba takes half a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

SAME = 1e-9
"""Relative: rates and ends that differ by less are the same, so that equal flows end together."""
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compiled at its first call; the machine code is kept beside this file or in the user's cache, where one of both
    can be written."""
    try:
        return cast(Function, numba.njit(cache=True, error_model="numpy")(function))
    except RuntimeError:
        return cast(Function, numba.njit(error_model="numpy")(function))


@compiled
def max_min_rates(routes: np.ndarray, capacities: np.ndarray, caps: np.ndarray) -> np.ndarray:
    """Rates that give every flow as much as it can have without taking from one that has less (Bertsekas and Gallager,
    Data Networks, section 6.5).

    `routes`: a row per flow, numbers of its links, filled up with len(capacities); `caps`: the most that each flow
    takes by itself."""
    flows, hops = routes.shape
    links = len(capacities)
    rates = np.full(flows, np.inf)
    left = capacities.copy()
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
                    share = min(share, left[link] / counts[link])
            shares[index] = share
            lowest = min(lowest, share)
        if lowest == np.inf:
            break
        kept = 0
        for index in range(remaining):
            flow = unfixed[index]
            if shares[index] <= lowest * (1 + SAME):
                rates[flow] = lowest
                for hop in range(hops):
                    freed[routes[flow, hop]] += 1
            else:
                unfixed[kept] = flow
                kept += 1
        remaining = kept
        for link in range(links):
            if freed[link]:
                if left[link] != np.inf:
                    left[link] = max(left[link] - freed[link] * lowest, 0.0)
                counts[link] -= freed[link]
        freed[:] = 0
    return rates


@compiled
def advance(left: np.ndarray, rates: np.ndarray, timer: float) -> tuple[float, np.ndarray]:
    """Runs all flows until the first of them ends, or for `timer` s: the s that pass, and which flows end. `left`, the
    bytes of each flow, is changed."""
    first = np.inf
    for flow in range(len(left)):
        first = min(first, left[flow] / rates[flow])
    step = min(first, timer)
    ended = np.zeros(len(left), np.bool_)
    for flow in range(len(left)):
        ended[flow] = first <= timer and left[flow] / rates[flow] <= step * (1 + SAME)
        # On links without a rate all arrives at once.
        left[flow] = 0.0 if rates[flow] == np.inf else left[flow] - rates[flow] * step
    return step, ended
