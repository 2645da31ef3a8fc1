"""Launches of one campaign share the conditions of one call of `run`. A test over the launches of several campaigns
knows nothing of them: its interval is made as wide as the campaigns disagree, and it decides nothing that one of them
alone denies (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scaleproof.stats.arm_difference import Difference, DifferenceReason
from scaleproof.stats.compare_arms import decide
from scaleproof.stats.intervals import Interval, median_interval, smallest_count
from scaleproof.stats.rank_tests import differences


class Alone(NamedTuple):
    """What one campaign gives alone, and how many launches an arm it has (pairs, where launches are paired)."""

    value: float
    launches: int


def around_campaigns(interval: Interval | None, alone: Sequence[Alone]) -> Interval | None:
    """An interval over all launches, widened where needed so that it holds the value that each campaign gives alone;
    six campaigns or more may leave out as many of these values as their 95 % interval does. One changes nothing."""
    if interval is None or len(alone) < 2:
        return interval
    values = [each.value for each in alone]
    between = median_interval(values) if _are_samples(alone) else None
    low, high = (between.low, between.high) if between else (min(values), max(values))
    return replace(interval, low=min(interval.low, low), high=max(interval.high, high), campaigns=len(alone))


def shift_alone(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray, paired: bool) -> Alone:
    """The factor between the arms in one campaign, as `compare` estimates it; of positive values."""
    return Alone(float(np.exp(np.median(differences(np.log(a), np.log(b), paired)))), min(len(a), len(b)))


def with_campaigns(difference: Difference, alone: Sequence[Alone]) -> Difference:
    """A comparison over all launches that knows the shift in each campaign alone: its finding stands only where each
    campaign, however short, is on the same side of the bound. Where each has one launch an arm, the test over launches
    is one over campaigns, and no single one of them has to agree."""
    if difference.interval is None or difference.p_value is None or len(alone) < 2:
        return difference
    interval = around_campaigns(difference.interval, alone)
    assert interval is not None
    widened = replace(difference, interval=interval, campaigns=tuple(each.value for each in alone))
    if difference.finding == "inconclusive":
        return widened
    significant = difference.p_value <= 1 - difference.confidence
    shifts = [difference.shift or 1.0, *([] if _are_launches(alone) else widened.campaigns)]
    findings = {decide(shift, interval, significant, difference.floor, difference.margin)[0] for shift in shifts}
    if findings == {difference.finding}:
        return widened
    return replace(widened, finding="inconclusive", reason=DifferenceReason.CAMPAIGNS_DISAGREE)


def _are_launches(alone: Sequence[Alone]) -> bool:
    """Whether each campaign has one launch an arm: what varies between campaigns varies between launches."""
    return max(each.launches for each in alone) == 1


def _are_samples(alone: Sequence[Alone]) -> bool:
    """Whether campaigns count equally: each is one launch, or as many as can be judged alone. Else pieces of one day,
    as many interruptions make them, could outvote another day."""
    return _are_launches(alone) or min(each.launches for each in alone) >= smallest_count()
