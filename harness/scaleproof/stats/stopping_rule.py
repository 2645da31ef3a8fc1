"""When to stop launching: the interval of the median is narrow enough, or the budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scaleproof.stats.bootstrap import ratio, ratio_interval
from scaleproof.stats.intervals import CONFIDENCE, median, median_interval, smallest_count

TARGET = 0.05
"""The interval's farther end must lie within this share of the median."""
BUDGET = 10
"""Launches per arm unless a suite says otherwise: enough to find a slowdown of 5 % in 95 % of comparisons when launches
spread by 2 %."""
Outcome = Literal["continue", "reached", "budget spent"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Whether to stop, the reason in one line, and the distance of the interval's farther end from the median as a
    share of the median (None: no interval yet)."""

    done: bool
    reason: str
    half_width_share: float | None
    outcome: Outcome


def state(
    values: Sequence[float], target: float = TARGET, budget: int = BUDGET, confidence: float = CONFIDENCE
) -> Stop:
    """Decide from one arm's values so far, one per launch. ValueError: budget below 1, target not above 0, or a value
    that is not finite."""
    if budget < 1 or target <= 0:
        raise ValueError(f"a budget is at least 1 launch and a target above 0, not {budget} and {target}")
    if not np.isfinite(np.asarray(values, dtype=float)).all():
        raise ValueError("a value of a launch is not finite")
    count, share = len(values), _share(values, confidence)
    if share is None:
        needed = smallest_count(confidence)
        so_far = f"{count} launches give no {confidence:.0%} interval" + (
            f", {needed} do" if count < needed else ": the median is 0"
        )
    else:
        so_far = f"{count} launches: the interval reaches {share:.1%} from the median"
    if share is not None and share <= target:
        return Stop(True, f"{so_far}, the target is {target:.1%}", share, "reached")
    if count >= budget:
        return Stop(
            True, f"budget of {budget} launches spent; {so_far}, the target is {target:.1%}", share, "budget spent"
        )
    return Stop(False, f"{so_far}, the target is {target:.1%}; up to {budget - count} more", share, "continue")


def ratio_share(above: Sequence[float], below: Sequence[float]) -> float | None:
    """The distance of the farther end of a paired ratio's interval from the ratio, as a share of the ratio. Only the
    width counts, never where the interval lies: who stops at a favourable moment finds agreement too often."""
    interval = ratio_interval(above, below, paired=True)
    if interval is None:
        return None
    centre = ratio(above, below)
    return max(interval.high - centre, centre - interval.low) / abs(centre) if centre else None


def median_share(values: Sequence[float]) -> float | None:
    """The distance of the farther end of the median's interval from the median, as a share of the median."""
    return _share(values, CONFIDENCE)


def _share(values: Sequence[float], confidence: float) -> float | None:
    interval = median_interval(values, confidence)
    if interval is None:
        return None
    centre = median(values)
    reach = max(interval.high - centre, centre - interval.low)
    if reach == 0:
        return 0.0
    return reach / abs(centre) if centre else None
