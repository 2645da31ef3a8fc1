"""Intervals for ratios of medians by a percentile bootstrap over launches, with a fixed seed: the same results give the
same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import stats

from scaleproof.stats.intervals import CONFIDENCE, Interval, Method, median, smallest_count

RESAMPLES = 9_999
SEED = 20_160_222
_TRIALS = 2_000
_TRIAL_RESAMPLES = 999
_BATCH = 1_000_000
"""Values that are resampled at a time: 8 MB a side."""


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
    with np.errstate(over="ignore"):  # of a spread that nobody reads, where launches have no number (never.py)
        ratios = _resampled_ratios(above, below, paired, RESAMPLES)
    low, high = np.quantile(ratios, _tails(nominal))
    method = Method.BOOTSTRAP_OF_BLOCKS if paired else Method.BOOTSTRAP_OF_LAUNCHES
    return Interval(float(low), float(high), attained, method, (len(above), len(below)))


@lru_cache(maxsize=64)
def calibrated(count: int, paired: bool, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The narrowest nominal level whose intervals of `count` launches a side hold the true ratio with at least
    `confidence`, and how often they do.

    By simulation with normal noise of 5 %, with a standard error of about 0.005: a percentile bootstrap of so few
    blocks is a little too narrow at its face value. A level counts as enough when it is so by one standard error.
    """
    generator = np.random.default_rng(SEED)
    levels = np.array([confidence, *(1 - (1 - confidence) * share for share in (0.8, 0.6, 0.4, 0.2, 0.0))])
    above, below = np.exp(generator.normal(0, 0.05, (2, _TRIALS, count)))
    low, high = np.quantile(_resampled_ratios(above, below, paired, _TRIAL_RESAMPLES), _tails(levels), axis=-1)
    attained = ((low <= 1) & (high >= 1)).mean(axis=-1)
    enough = np.flatnonzero(attained - np.sqrt(attained * (1 - attained) / _TRIALS) >= confidence)
    chosen = int(enough[0]) if len(enough) else len(levels) - 1
    return float(levels[chosen]), float(attained[chosen])


def _tails(level: float | np.ndarray) -> np.ndarray:
    return np.array([(1 - level) / 2, (1 + level) / 2])


def _resampled_ratios(above: np.ndarray, below: np.ndarray, paired: bool, resamples: int) -> np.ndarray:
    """Ratios of medians, of shape (..., resamples), for sides of shape (..., launches)."""
    ratios: np.ndarray = stats.bootstrap(
        (above, below),
        lambda first, second, axis: _median(first, axis) / _median(second, axis),
        n_resamples=resamples,
        batch=max(1, _BATCH // above.size),
        vectorized=True,
        paired=paired,
        axis=-1,
        method="percentile",
        rng=SEED,
    ).bootstrap_distribution
    return ratios


def _median(values: np.ndarray, axis: int) -> np.ndarray:
    """As np.median, which takes twice as long for many short rows."""
    ordered = np.sort(values, axis=axis)
    count = ordered.shape[axis]
    return (ordered.take((count - 1) // 2, axis) + ordered.take(count // 2, axis)) / 2
