"""Nonparametric intervals of a median, with the coverage they attain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

CONFIDENCE = 0.95


class Method(StrEnum):
    """How an interval was made; `counts` and `parts` of the interval say over what."""

    ORDER_STATISTICS = "order statistics"
    ORDER_STATISTICS_OF_CASES = "order statistics of cases"
    BOOTSTRAP_OF_BLOCKS = "percentile bootstrap over blocks"
    BOOTSTRAP_OF_LAUNCHES = "percentile bootstrap over launches"
    HODGES_LEHMANN_PAIRED = "Hodges-Lehmann over blocks"
    HODGES_LEHMANN = "Hodges-Lehmann over launches"
    PREDICTION = "prediction interval"  # where one more draw from the inputs' uncertainty lies
    PREDICTION_CUT = "prediction interval, cut at what computing allows"
    CERTAIN_INPUTS = "no uncertainty in the inputs"
    WORST_ENDS = "worst ends"  # of a quotient of two intervals, its `parts`
    AROUND_POINTS = "around points"  # around the intervals of `counts` points; `parts`: the first of them


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval that holds the true value with probability `coverage`: the attained one, not the requested one."""

    low: float
    high: float
    coverage: float
    method: Method
    counts: tuple[int, ...] = ()
    parts: tuple[Interval, ...] = ()
    campaigns: int = 1
    """Campaigns of whose disagreement it knows (stats/campaigns.py)."""


def median(values: Sequence[float] | np.ndarray) -> float:
    """The sample median; ValueError when there are no values."""
    if not len(values):
        raise ValueError("a median needs at least one value")
    return float(np.median(np.asarray(values, dtype=float)))


def median_interval(values: Sequence[float] | np.ndarray, confidence: float = CONFIDENCE) -> Interval | None:
    """Order statistics k and n+1-k with the largest k that covers the median with at least `confidence`; None when even
    [min, max] does not. The interval of scipy.stats.quantile_test, with the coverage that it attains.

    Coverage 1 - 2 P(Binomial(n, 1/2) < k) holds for any continuous distribution: 6 values give [min, max] at 96.9 %,
    fewer give no 95 % interval.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    depth, coverage = _depth(len(ordered), confidence)
    if depth == 0:
        return None
    low, high = float(ordered[depth - 1]), float(ordered[-depth])
    return Interval(low, high, coverage, Method.ORDER_STATISTICS, (len(ordered),))


@cache
def _depth(count: int, confidence: float) -> tuple[int, float]:
    """The k of `median_interval` and its coverage; k is 0 when there is no interval."""
    from scipy.stats import binom  # imported late: it takes half a second, and tables of metrics need no interval

    coverages = 1 - 2 * binom.cdf(np.arange(count // 2), count, 0.5)  # of k = 1, 2, ...
    depth = int(np.sum(coverages >= confidence))
    return depth, float(coverages[depth - 1]) if depth else 0.0


@cache
def smallest_count(confidence: float = CONFIDENCE) -> int:
    """Fewest values for which an interval exists: 6 at 95 %."""
    count = 2
    while _depth(count, confidence)[0] == 0:
        count += 1
    return count
