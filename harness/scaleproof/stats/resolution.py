"""The smallest effect that a number of launches decides, and the number of launches that an effect needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from scaleproof.stats.compare_arms import POWER, detectable
from scaleproof.stats.intervals import CONFIDENCE, median_interval, smallest_count

MOST = 200
"""Launches of a case that anyone would make."""
_SEED = 20_160_222
_TRIALS = 4_000


def of_ratio(spread: float, launches: int, floor: float) -> float:
    """The smallest difference of two paired arms, a share, that 95 % of comparisons find beyond the noise floor;
    infinite where so few launches can find none."""
    return detectable(spread, launches, True, floor=floor)


def of_value(spread: float, launches: int, floor: float = 0.0) -> float:
    """The smallest distance from a bound, a share, at which 95 % of intervals of a median lie on one side of it."""
    if launches < smallest_count():
        return float("inf")
    return float(np.expm1(spread * _distance(launches) + np.log1p(floor)))


def launches_needed(effect: float, resolution: Callable[[int], float]) -> int | None:
    """The fewest launches whose resolution reaches the effect; None where no number up to MOST does."""
    if resolution(MOST) > effect:
        return None
    low, high = 1, MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if resolution(middle) <= effect else (middle + 1, high)
    return low


@lru_cache(maxsize=256)
def _distance(launches: int, confidence: float = CONFIDENCE) -> float:
    """How far a median must lie from a bound, in standard deviations of normal noise."""
    draws = np.sort(np.random.default_rng(_SEED).normal(size=(_TRIALS, launches)), axis=1)
    interval = median_interval(np.arange(1.0, launches + 1), confidence)
    assert interval is not None
    return float(-np.quantile(draws[:, int(interval.low) - 1], 1 - POWER, method="lower"))
