"""Intervals for ratios of medians by a percentile bootstrap over launches, with a fixed seed: the same results give the
same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from scaleproof.stats.intervals import CONFIDENCE, Interval, Method, median, smallest_count

RESAMPLES = 9_999
SEED = 20_160_222
_TRIALS = 1_000
_TRIAL_RESAMPLES = 999


def ratio(numerator: Sequence[float] | np.ndarray, denominator: Sequence[float] | np.ndarray) -> float:
    """Ratio of medians, never a median or mean of ratios; ValueError when a side is empty or the lower median is 0."""
    below = median(denominator)
    if below == 0:
        raise ValueError("the median below the line is 0")
    return median(numerator) / below


def ratio_interval(
    numerator: Sequence[float] | np.ndarray,
    denominator: Sequence[float] | np.ndarray,
    paired: bool = False,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Interval of `ratio`; None below 6 launches a side or with a 0 below the line. `paired`: element k of both ran in
    one block; blocks are resampled."""
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    if paired and len(above) != len(below):
        raise ValueError(f"paired sides differ: {len(above)} and {len(below)} launches")
    if min(len(above), len(below)) < smallest_count(confidence) or np.any(below == 0):
        return None
    nominal, attained = calibrated(min(len(above), len(below)), paired, confidence)
    ratios = _resampled(np.random.default_rng(SEED), above, below, paired, RESAMPLES)
    low, high = np.quantile(ratios, [(1 - nominal) / 2, (1 + nominal) / 2])
    method = Method.BOOTSTRAP_OF_BLOCKS if paired else Method.BOOTSTRAP_OF_LAUNCHES
    return Interval(float(low), float(high), attained, method, (len(above), len(below)))


@lru_cache(maxsize=64)
def calibrated(count: int, paired: bool, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The narrowest nominal level whose intervals of `count` launches a side hold the true ratio with at least
    `confidence`, and how often they do.

    By simulation with normal noise of 5 %, to about 0.01: a percentile bootstrap of so few blocks is a little too
    narrow at its face value.
    """
    generator = np.random.default_rng(SEED)
    levels = np.array([confidence, *(1 - (1 - confidence) * share for share in (0.8, 0.6, 0.4, 0.2, 0.0))])
    held = np.zeros(len(levels))
    for _ in range(_TRIALS):
        above, below = np.exp(generator.normal(0, 0.05, (2, count)))
        ratios = _resampled(generator, above, below, paired, _TRIAL_RESAMPLES)
        low, high = np.quantile(ratios, (1 - levels) / 2), np.quantile(ratios, (1 + levels) / 2)
        held += (low <= 1) & (high >= 1)
    attained = held / _TRIALS
    enough = np.flatnonzero(attained >= confidence)
    chosen = int(enough[0]) if len(enough) else len(levels) - 1
    return float(levels[chosen]), float(attained[chosen])


def _resampled(
    generator: np.random.Generator, above: np.ndarray, below: np.ndarray, paired: bool, resamples: int
) -> np.ndarray:
    first = generator.integers(len(above), size=(resamples, len(above)))
    second = first if paired else generator.integers(len(below), size=(resamples, len(below)))
    ratios: np.ndarray = np.median(above[first], axis=1) / np.median(below[second], axis=1)
    return ratios
