"""Launches of one campaign share the conditions of one call of `run`. A test over the launches of several campaigns
knows nothing of them: its interval is made as wide as the campaigns disagree, and it decides nothing that one of them
alone denies (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scaleproof.stats.arm_difference import Difference, DifferenceReason
from scaleproof.stats.compare_arms import decide
from scaleproof.stats.intervals import Interval, median_interval
from scaleproof.stats.rank_tests import differences


def around_campaigns(interval: Interval | None, alone: Sequence[float]) -> Interval | None:
    """An interval over all launches, widened where needed so that it holds the value that each campaign gives alone.
    From six campaigns on it holds the 95 % interval of these values. One campaign changes nothing."""
    if interval is None or len(alone) < 2:
        return interval
    between = median_interval(alone)
    low, high = (between.low, between.high) if between else (min(alone), max(alone))
    return replace(interval, low=min(interval.low, low), high=max(interval.high, high), campaigns=len(alone))


def shift_alone(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray, paired: bool) -> float:
    """The factor between the arms in one campaign, as `compare` estimates it; of positive values."""
    return float(np.exp(np.median(differences(np.log(a), np.log(b), paired))))


def with_campaigns(difference: Difference, alone: Sequence[float]) -> Difference:
    """A comparison over all launches that knows the shift in each campaign alone: its finding stands only where each
    campaign is on the same side of the bound."""
    if difference.interval is None or difference.p_value is None or len(alone) < 2:
        return difference
    interval = around_campaigns(difference.interval, alone)
    assert interval is not None
    widened = replace(difference, interval=interval, campaigns=tuple(alone))
    if difference.finding == "inconclusive":
        return widened
    significant = difference.p_value <= 1 - difference.confidence
    findings = {
        decide(shift, interval, significant, difference.floor, difference.margin)[0]
        for shift in (difference.shift or 1.0, *alone)
    }
    if findings == {difference.finding}:
        return widened
    return replace(widened, finding="inconclusive", reason=DifferenceReason.CAMPAIGNS_DISAGREE)
