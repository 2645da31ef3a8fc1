"""Values with intervals: of launches, of predictions, and over a range of conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scaleproof.report.groups import summary
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.bootstrap import ratio_interval
from scaleproof.stats.intervals import Interval, median


class Estimate(NamedTuple):
    """A value and the ends of its interval, which may be missing."""

    value: float
    low: float | None
    high: float | None

    def over(self, divisor: float) -> Estimate:
        """Value and interval divided by the same number."""
        low, high = (None if end is None else end / divisor for end in (self.low, self.high))
        return Estimate(self.value / divisor, low, high)


def of_launches(values: Iterable[float]) -> Estimate:
    """The median over launches with its interval."""
    stats = summary(values)
    return Estimate(stats.median, stats.low, stats.high)


def of_predictions(values: Mapping[int, float]) -> Estimate:
    """The prediction (repetition 0) with the spread of its draws (the others)."""
    return _with_interval(predictions.central(values), predictions.spread(values))


def ratio_of_launches(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Median over median, with a bootstrap interval over launches."""
    return _with_interval(median(above) / median(below), ratio_interval(above, below))


def around(estimates: Sequence[Estimate]) -> Estimate:
    """A single estimate unchanged; of several the median of their values, with an interval around all their intervals,
    or without one if any of them has none."""
    if len(estimates) == 1:
        return estimates[0]
    middle = median([estimate.value for estimate in estimates])
    lows = [estimate.low for estimate in estimates if estimate.low is not None]
    highs = [estimate.high for estimate in estimates if estimate.high is not None]
    complete = len(lows) == len(highs) == len(estimates)
    return Estimate(middle, min(lows), max(highs)) if complete else Estimate(middle, None, None)


def _with_interval(value: float, interval: Interval | None) -> Estimate:
    return Estimate(value, interval.low, interval.high) if interval else Estimate(value, None, None)
