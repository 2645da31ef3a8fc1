"""The result of a comparison of two arms, as facts; `claims/difference_sentences.py` makes the sentences."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from scaleproof.stats.intervals import CONFIDENCE, Interval

Finding = Literal["higher", "lower", "no difference", "inconclusive"]


class DifferenceTest(StrEnum):
    """What decides whether two arms differ."""

    SIGNED_RANK = "signed-rank"  # exact Wilcoxon test over blocks
    RANK_SUM = "rank-sum"  # exact Wilcoxon test over launches
    DRAWS = "draws"  # two predictions: the spread of draws from the inputs' uncertainty
    WORST_ENDS = "worst ends"  # a prediction and launches: the worst ends of both intervals


class DifferenceReason(StrEnum):
    """Why a comparison has its finding."""

    NO_LAUNCHES = "no launches"
    NOT_POSITIVE = "not positive"  # values of 0 and below have no ratio
    ALL_VALUES_EQUAL = "all values equal"
    TOO_FEW = "too few"
    WITHIN_MARGIN = "within margin"
    SIGNIFICANT = "significant"
    SIGNIFICANT_WITHIN_FLOOR = "significant within floor"
    PAIRS_EQUAL = "pairs equal"
    EQUIVALENT = "equivalent"
    FLOOR_TOO_WIDE = "floor too wide"  # a difference worth finding would be hidden
    NOT_RULED_OUT = "not ruled out"
    CAMPAIGNS_DISAGREE = "campaigns disagree"  # all launches together decide, but a campaign alone says otherwise
    BY_INTERVAL = "by interval"  # of predictions: there is no sampling, hence no p-value


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of a comparison of arms a and b.

    `ratio`: of medians, a / b; None where a side has no launches or values of 0 and below. `shift`: the factor between
    the arms that the test is about (Hodges-Lehmann); unlike the ratio of medians it is free of what paired blocks
    share. `shift`, `interval` and `p_value` are None also where a side has too few launches. `floor` and `margin` are
    shares; `detectable` is the smallest difference, a share, that so many launches find. `value`: of all launches where
    they are equal.
    """

    ratio: float | None
    shift: float | None
    interval: Interval | None
    p_value: float | None
    test: DifferenceTest
    n: tuple[int, int]
    floor: float | None
    finding: Finding
    reason: DifferenceReason
    confidence: float = CONFIDENCE
    margin: float | None = None
    detectable: float | None = None
    value: float | None = None
    campaigns: tuple[float, ...] = ()
    """The shift in each campaign alone; empty where there is one campaign."""
