"""Summaries and the checks before them: means by kind, Tukey's fences as a warning, a test of normality before any t
interval, effect size, trend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from scaleproof.stats.intervals import CONFIDENCE, Interval, Method

FENCE = 1.5
"""Interquartile ranges beyond the quartiles (Tukey 1977)."""
SHAPIRO_LEVEL = 0.05
FEWEST_FOR_SHAPIRO = 3


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
class MeanInterval:
    """A t interval of the mean, or the reason why there is none."""

    interval: Interval | None
    reason: str


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


def mean(values: Sequence[float] | np.ndarray, kind: Literal["cost", "rate"]) -> float:
    """Arithmetic mean of costs (s, bytes), harmonic mean of rates (per s): rule 3 of Hoefler and Belli. ValueError: no
    values, or a rate of 0 or below."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        raise ValueError("a mean needs at least one value")
    if kind == "cost":
        return float(array.mean())
    if array.min() <= 0:
        raise ValueError("a harmonic mean needs rates above 0")
    return float(stats.hmean(array))


def t_interval(values: Sequence[float] | np.ndarray, confidence: float = CONFIDENCE) -> MeanInterval:
    """Student's interval of the mean, only where Shapiro and Wilk's test does not speak against a normal distribution;
    else none, and why."""
    array = np.asarray(values, dtype=float)
    if len(array) < FEWEST_FOR_SHAPIRO:
        return MeanInterval(None, f"{len(array)} values cannot be tested for normality, {FEWEST_FOR_SHAPIRO} can")
    if np.ptp(array) == 0:
        return MeanInterval(None, "all values are equal: there is no spread to test for normality")
    chance = float(stats.shapiro(array).pvalue)
    if chance < SHAPIRO_LEVEL:
        return MeanInterval(
            None,
            f"not normal: Shapiro-Wilk p = {chance:.2g} over {len(array)} values; take the median and its interval",
        )
    low, high = stats.ttest_1samp(array, 0.0).confidence_interval(confidence)
    why = f"Shapiro-Wilk p = {chance:.2g} over {len(array)} values does not speak against normality"
    return MeanInterval(Interval(float(low), float(high), confidence, Method.STUDENT), why)


def effect_size(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """(mean a - mean b) / pooled standard deviation within the arms; infinite where neither arm spreads but they
    differ, 0 where they do not.

    ValueError with fewer than two values a side.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if min(len(first), len(second)) < 2:
        raise ValueError("an effect size needs two values a side")
    squares = np.sum((first - first.mean()) ** 2) + np.sum((second - second.mean()) ** 2)
    difference, spread = float(first.mean() - second.mean()), float(np.sqrt(squares / (len(first) + len(second) - 2)))
    if spread == 0:
        return 0.0 if difference == 0 else float(np.copysign(np.inf, difference))
    return difference / spread


def trend(x: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray) -> Trend:
    """Whether values rise (tau above 0) or fall with x over all launches, by rank alone. ValueError when the sides
    differ in length or x has one value."""
    if len(x) != len(values):
        raise ValueError(f"{len(x)} x for {len(values)} values")
    if len(set(np.asarray(x, dtype=float).tolist())) < 2:
        raise ValueError("a trend needs two different x")
    if np.ptp(np.asarray(values, dtype=float)) == 0:
        return Trend(0.0, 1.0)
    test = stats.kendalltau(np.asarray(x, dtype=float), np.asarray(values, dtype=float))
    return Trend(float(test.statistic), float(test.pvalue))
