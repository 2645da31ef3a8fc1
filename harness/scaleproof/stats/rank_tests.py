"""Exact rank tests of a shift and the intervals that they imply: both from one null distribution, so that they never
contradict each other.

Unpaired: Wilcoxon's rank-sum (Mann and Whitney's U) over all pairwise differences. Paired: Wilcoxon's signed-rank over
all Walsh averages of the differences. The interval is the one of Hodges and Lehmann (Moses; Tukey): order statistics of
those same differences. Exact for continuous values; ties are counted against a difference, which only makes the test
stricter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True, slots=True)
class Shift:
    """The shift of the first sample against the second. `low`, `high`: None when there are too few values for an
    interval of that confidence."""

    centre: float
    """Hodges and Lehmann's estimate: the median of all differences."""
    low: float | None
    high: float | None
    coverage: float
    p_value: float
    """Two-sided."""


def shift(first: np.ndarray, second: np.ndarray, paired: bool, confidence: float) -> Shift:
    """Test and interval of first - second; ValueError for an empty side or paired sides of different lengths."""
    steps = differences(first, second, paired)
    below = null_below(len(first), len(second), paired)
    tail = min(int(np.sum(steps <= 0)), int(np.sum(steps >= 0)))
    p_value = min(1.0, 2 * float(below[tail]))
    depth = depth_of(len(first), len(second), paired, confidence)
    if depth == 0:
        return Shift(float(np.median(steps)), None, None, 0.0, p_value)
    coverage = 1 - 2 * float(below[depth - 1])
    return Shift(float(np.median(steps)), float(steps[depth - 1]), float(steps[-depth]), coverage, p_value)


def differences(first: np.ndarray, second: np.ndarray, paired: bool) -> np.ndarray:
    """The sorted differences that the test counts: of all pairs of values, or the Walsh averages of the paired
    differences."""
    if not len(first) or not len(second):
        raise ValueError("a test needs values on both sides")
    if not paired:
        return np.sort((first[:, None] - second[None, :]).ravel())
    if len(first) != len(second):
        raise ValueError(f"paired sides differ: {len(first)} and {len(second)} launches")
    by_block = first - second
    rows, columns = np.triu_indices(len(by_block))
    return np.sort((by_block[rows] + by_block[columns]) / 2)


def depth_of(first: int, second: int, paired: bool, confidence: float) -> int:
    """At which difference, counted from each end, the interval starts; 0 when not even all of them reach the
    confidence."""
    below = null_below(first, second, paired)
    return int(np.sum(2 * below <= 1 - confidence + 1e-12))


@lru_cache(maxsize=256)
def null_below(first: int, second: int, paired: bool) -> np.ndarray:
    """P(statistic <= u) for u = 0, 1, ... without any shift."""
    chances = _signed_rank(first) if paired else _rank_sum(first, second)
    below = np.minimum(np.cumsum(chances), 1.0)
    below.setflags(write=False)
    return below


def _signed_rank(count: int) -> np.ndarray:
    """Every rank 1..n is added or not, each with chance 1/2."""
    chances = np.ones(1)
    for rank in range(1, count + 1):
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return chances


def _rank_sum(first: int, second: int) -> np.ndarray:
    """The largest of all values belongs to the first sample with chance n/(n+m), and then beats all m of the second
    (Mann and Whitney's recursion)."""
    rows = [np.ones(1) for _ in range(second + 1)]
    for ones in range(1, first + 1):
        for others in range(1, second + 1):
            chances = np.zeros(ones * others + 1)
            chances[others:] += rows[others] * ones / (ones + others)
            chances[: ones * (others - 1) + 1] += rows[others - 1] * others / (ones + others)
            rows[others] = chances
    return rows[second]
