"""Time to quality as MLPerf Training scores it: N runs, olympic mean, windows of more runs, and the check against
reference convergence points.

Source: mlcommons/training_policies, training_rules.adoc (d73e20f): sections Benchmark Results and RCPs, and the
appendix RCP Examples. The rules leave the dropped runs out of the standard deviation; mlcommons/logging's
rcp_checker.py (7bbf792) takes all runs, which gives a laxer bound. We follow the rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

P_VALUE = 0.05
DROPPED = 1
"""Runs dropped at each end; UNet3D drops 4."""


@dataclass(frozen=True, slots=True)
class Score:
    """The olympic mean of a result's runs; `value` None when the result is invalid, and why."""

    value: float | None
    why: str
    not_converged: int


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """Convergence of the reference at one batch size, in epochs: mean and population standard deviation of the runs
    that were not dropped, and their number."""

    batch: float
    mean: float
    deviation: float
    runs: int
    interpolated: bool = False

    def bound(self, submission_runs: int, dropped: int = DROPPED) -> float:
        """The smallest accepted mean of a submission: one-sided two-sample t test at p = 0.05, equal variances."""
        scored_runs = submission_runs - 2 * dropped
        if scored_runs < 1:
            raise ValueError(f"{submission_runs} runs leave none when {dropped} are dropped at each end")
        quantile = float(student.ppf(1 - P_VALUE, self.runs + scored_runs - 2))
        return self.mean - quantile * self.deviation * math.sqrt(1 / self.runs + 1 / scored_runs)

    def largest_speedup(self, submission_runs: int, dropped: int = DROPPED) -> float:
        """The share by which a submission may converge faster than the reference."""
        return self.mean / self.bound(submission_runs, dropped) - 1


@dataclass(frozen=True, slots=True)
class Convergence:
    """Whether a submission's convergence is accepted; None: its batch size needs reference runs of its own. Its score
    is multiplied by `factor`."""

    accepted: bool | None
    factor: float
    mean: float | None
    point: ReferencePoint | None
    why: str


def olympic_mean(values: Sequence[float], dropped: int = DROPPED) -> float:
    """Mean without the `dropped` fastest and slowest; infinite values are slowest. ValueError when nothing is left."""
    if len(values) <= 2 * dropped:
        raise ValueError(f"{len(values)} runs leave none when {dropped} are dropped at each end")
    return float(np.mean(np.sort(np.asarray(values, dtype=float))[dropped : len(values) - dropped]))


def score(runs: Sequence[float | None], needed: int, dropped: int = DROPPED) -> Score:
    """Score `needed` runs (s or epochs; None: did not converge) of consecutive windows where there are more: the median
    window, invalid ones infinite.

    Of an even number of windows the slower middle one. A window may have `dropped` runs that did not converge: they
    count as its slowest.
    """
    failed = sum(run is None for run in runs)
    if len(runs) < needed:
        return Score(None, f"{len(runs)} runs, the result needs {needed}", failed)
    costs = [math.inf if run is None else float(run) for run in runs]
    windows = [
        olympic_mean(costs[start : start + needed], dropped) for start in range(len(costs) - needed + 1)
    ]  # infinite where too many failed
    middle = sorted(windows)[len(windows) // 2]
    over = f"{needed} runs" if len(windows) == 1 else f"median of {len(windows)} windows of {needed} runs"
    if math.isinf(middle):
        return Score(None, f"invalid: {over}, {failed} runs did not converge, at most {dropped} may", failed)
    return Score(middle, f"olympic mean of {over}, {dropped} dropped at each end, {failed} did not converge", failed)


def reference_point(
    batch: float, epochs: Sequence[float], submission_runs: int, dropped: int = DROPPED
) -> ReferencePoint:
    """The reference's point of a batch size. ValueError when it has fewer runs than twice the submission's."""
    if len(epochs) < 2 * submission_runs:
        raise ValueError(f"batch {batch:g}: {len(epochs)} reference runs, {2 * submission_runs} are needed")
    scored = np.sort(np.asarray(epochs, dtype=float))[dropped : len(epochs) - dropped]
    return ReferencePoint(batch, float(scored.mean()), float(scored.std()), len(scored))


def interpolate(batch: float, low: ReferencePoint, high: ReferencePoint, submission_runs: int) -> ReferencePoint:
    """A point between two: mean and standard deviation on straight lines. It counts as 2N runs, as in the rules'
    example (18.25 epochs, 3.68 %)."""
    share = (batch - low.batch) / (high.batch - low.batch)
    mean, deviation = (
        low.mean + share * (high.mean - low.mean),
        low.deviation + share * (high.deviation - low.deviation),
    )
    return ReferencePoint(batch, mean, deviation, 2 * submission_runs, True)


def prune(points: Sequence[ReferencePoint]) -> list[ReferencePoint]:
    """The lower convex hull: without points that are slower than a straight line between two others around them."""
    hull: list[ReferencePoint] = []
    for point in sorted(points, key=lambda point: point.batch):
        while len(hull) > 1 and hull[-1].mean > interpolate(hull[-1].batch, hull[-2], point, 1).mean:
            hull.pop()
        hull.append(point)
    return hull


def point_at(batch: float, points: Sequence[ReferencePoint], submission_runs: int) -> ReferencePoint | None:
    """The reference point that a batch size is checked against, interpolated where it lies between two; None outside
    the points."""
    smaller, larger = [p for p in points if p.batch <= batch], [p for p in points if p.batch >= batch]
    if not smaller or not larger:
        return None
    low, high = max(smaller, key=lambda p: p.batch), min(larger, key=lambda p: p.batch)
    return low if low.batch == high.batch else interpolate(batch, low, high, submission_runs)


def check_convergence(
    epochs: Sequence[float | None], batch: float, points: Sequence[ReferencePoint], needed: int, dropped: int = DROPPED
) -> Convergence:
    """Check a submission of exactly `needed` runs against pruned reference points."""
    if len(epochs) != needed:
        raise ValueError(f"{len(epochs)} runs to check, the result has {needed}")
    own = score(epochs, needed, dropped)
    hull = prune(points)
    if not hull:
        return Convergence(None, 1.0, own.value, None, "there are no reference points")
    if own.value is None:
        return Convergence(False, 1.0, None, None, own.why)
    point = point_at(batch, hull, needed)
    if point is not None:
        return _against(own.value, point, needed, dropped)
    smallest = hull[0]
    missing = (
        f"batch {batch:g} is {{}} than every reference point ({hull[0].batch:g} to {hull[-1].batch:g}): the reference "
        "must be run at this batch size"
    )
    if batch > smallest.batch:
        return Convergence(None, 1.0, own.value, None, missing.format("larger"))
    at_smallest = _against(own.value, smallest, needed, dropped)
    if at_smallest.accepted:
        return at_smallest
    return Convergence(None, 1.0, own.value, smallest, f"{missing.format('smaller')}; {at_smallest.why}")


def _against(mean: float, point: ReferencePoint, needed: int, dropped: int) -> Convergence:
    bound = point.bound(needed, dropped)
    where = f"batch {point.batch:g}{' (interpolated)' if point.interpolated else ''}"
    if mean < bound:
        return Convergence(False, 1.0, mean, point, f"mean {mean:.4g} epochs is below the bound {bound:.4g} of {where}")
    if mean < point.mean:
        factor = point.mean / mean
        why = (
            f"mean {mean:.4g} epochs is between the bound {bound:.4g} and the mean {point.mean:.4g} of {where}: the "
            f"score is multiplied by {factor:.4g}"
        )
        return Convergence(True, factor, mean, point, why)
    return Convergence(
        True, 1.0, mean, point, f"mean {mean:.4g} epochs is at least the mean {point.mean:.4g} of {where}"
    )


def table(
    points: Sequence[ReferencePoint], submission_runs: int, batches: Sequence[float] = (), dropped: int = DROPPED
) -> list[dict[str, float | int | bool]]:
    """One row per point and per interpolated batch size: batch, runs, mean, deviation, bound, largest speed-up in %."""
    between = [
        point
        for batch in batches
        if (point := point_at(batch, points, submission_runs)) is not None and point.interpolated
    ]
    return [
        {
            "batch": point.batch,
            "runs": point.runs,
            "mean": point.mean,
            "deviation": point.deviation,
            "bound": point.bound(submission_runs, dropped),
            "largest_speedup_percent": 100 * point.largest_speedup(submission_runs, dropped),
            "interpolated": point.interpolated,
        }
        for point in sorted([*points, *between], key=lambda point: point.batch)
    ]
