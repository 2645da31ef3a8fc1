"""Tukey's fences as a warning, and the trend of values along x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FENCE = 1.5
"""Interquartile ranges beyond the quartiles (Tukey 1977)."""


@dataclass(frozen=True, slots=True)
class Outliers:
    """Positions of values outside Tukey's fences. They are shown, never removed."""

    positions: tuple[int, ...]
    low: float
    high: float

    @property
    def count(self) -> int:
        """Number of outliers."""
        return len(self.positions)


@dataclass(frozen=True, slots=True)
class Trend:
    """Kendall's tau between x and the values, with its two-sided p-value."""

    tau: float
    p_value: float


def outliers(values: Sequence[float] | np.ndarray) -> Outliers:
    """Values more than 1.5 interquartile ranges outside the quartiles; none of fewer than four values."""
    array = np.asarray(values, dtype=float)
    if len(array) < 4:
        return Outliers((), float("-inf"), float("inf"))
    first, third = np.quantile(array, [0.25, 0.75])
    low, high = first - FENCE * (third - first), third + FENCE * (third - first)
    return Outliers(
        tuple(int(index) for index in np.flatnonzero((array < low) | (array > high))), float(low), float(high)
    )


def trend(x: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray) -> Trend:
    """Whether values rise (tau above 0) or fall with x over all launches, by rank alone. ValueError when the sides
    differ in length or x has one value."""
    from scipy import stats  # half a second, which reading claims does not need

    if len(x) != len(values):
        raise ValueError(f"{len(x)} x for {len(values)} values")
    if len(set(np.asarray(x, dtype=float).tolist())) < 2:
        raise ValueError("a trend needs two different x")
    if np.ptp(np.asarray(values, dtype=float)) == 0:
        return Trend(0.0, 1.0)
    test = stats.kendalltau(np.asarray(x, dtype=float), np.asarray(values, dtype=float))
    return Trend(float(test.statistic), float(test.pvalue))
