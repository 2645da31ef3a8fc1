"""Values with intervals: of launches, of predictions, and over a range of conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scaleproof.core.campaign import Campaign
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.bootstrap import ratio_interval
from scaleproof.stats.campaigns import Alone, around_campaigns
from scaleproof.stats.intervals import Interval, median, median_interval

InCampaign = tuple[Campaign, float]
"""The value of a launch with the campaign that made it."""


class Estimate(NamedTuple):
    """A value and the ends of its interval, which may be missing."""

    value: float
    low: float | None
    high: float | None

    def over(self, divisor: float) -> Estimate:
        """Value and interval divided by the same number."""
        low, high = (None if end is None else end / divisor for end in (self.low, self.high))
        return Estimate(self.value / divisor, low, high)

    def minus(self, number: float) -> Estimate:
        """Value and interval less the same number."""
        low, high = (None if end is None else end - number for end in (self.low, self.high))
        return Estimate(self.value - number, low, high)

    def by(self, below: Estimate) -> Estimate:
        """The quotient of two levels of evidence, whose interval has the worst ends of both: draws and launches have
        different kinds of uncertainty."""
        ends = self.low, self.high, below.low, below.high
        if any(end is None for end in ends) or not below.low or below.low <= 0 or self.low is None:
            return Estimate(self.value / below.value, None, None)
        assert self.high is not None and below.high is not None
        return Estimate(self.value / below.value, self.low / below.high, self.high / below.low)


def of_launches(values: Sequence[InCampaign]) -> Estimate:
    """The median over launches with its interval around their campaigns."""
    numbers = [value for _, value in values]
    alone = [Alone(median(of_one), len(of_one)) for of_one in _by_campaign(values).values()]
    return _with_interval(median(numbers), around_campaigns(median_interval(numbers), alone))


def of_predictions(values: Mapping[int, float], most: float | None = None) -> Estimate:
    """The prediction (repetition 0) with the spread of its draws (the others). `most`: what no draw can exceed."""
    return _with_interval(predictions.central(values), predictions.spread(values, most=most))


def ratio_of_launches(above: Sequence[InCampaign], below: Sequence[InCampaign]) -> Estimate:
    """Median over median, with a bootstrap interval over launches around the campaigns that both sides have."""
    numerator, denominator = [value for _, value in above], [value for _, value in below]
    one, other = _by_campaign(above), _by_campaign(below)
    interval = ratio_interval(numerator, denominator)
    if interval is not None:
        both = [(one[campaign], other[campaign]) for campaign in sorted(one.keys() & other.keys())]
        alone = [Alone(median(ours) / median(base), min(len(ours), len(base))) for ours, base in both]
        interval = around_campaigns(interval, alone)
    return _with_interval(median(numerator) / median(denominator), interval)


def _by_campaign(values: Sequence[InCampaign]) -> dict[Campaign, list[float]]:
    campaigns: dict[Campaign, list[float]] = {}
    for campaign, value in values:
        campaigns.setdefault(campaign, []).append(value)
    return campaigns


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
