"""Claims whose conditions are known as a range only (`over`: fields of the case). Such a claim is judged at every point
of the range, and holds where every point agrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.launch_pool import Pool, chosen
from scaleproof.claims.outcome import Outcome, PointFacts, RangeFacts, Reason
from scaleproof.claims.question import Measurement
from scaleproof.claims.verdict_rules import Estimate
from scaleproof.core.record_schema import Evidence
from scaleproof.stats.intervals import Interval, Method, median

Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RangeResult:
    """All points together: the median of their values with an interval around all their intervals, and the verdict that
    they share."""

    measurement: Measurement
    outcome: Outcome | None


def points(pool: Pool, select: Mapping[str, Any], fields: Sequence[str], evidence: Evidence) -> list[dict[str, Any]]:
    """Every combination of the fields' values among the selected cases of the plan that are simulated, or among those
    that are run, as `evidence` says."""
    simulated = evidence == "simulated"
    planned = [
        launch.case
        for launch in pool.planned
        if chosen(launch.case, select) and (launch.case.plugin("fabric").predicted) == simulated
    ]
    combinations = {tuple(case.value(field) for field in fields) for case in planned}
    return [dict(zip(fields, values, strict=True)) for values in sorted(combinations, key=str)]


def judged(
    points: Sequence[Point],
    measure: Callable[[Point], Measurement | None],
    decide: Callable[[Estimate], Outcome | None],
) -> RangeResult | None:
    """Measure and decide at each point; None when no point has a value."""
    by_point = [(point, measure(point)) for point in points]
    measurements = [measurement for _, measurement in by_point if measurement is not None]
    if not measurements:
        return None
    facts = [
        PointFacts(at=dict(point), outcome=None if measurement is None else decide(measurement.estimate))
        for point, measurement in by_point
    ]
    return RangeResult(_together(measurements), _shared(facts))


def _shared(points: Sequence[PointFacts]) -> Outcome | None:
    """The verdict that all points share."""
    facts = RangeFacts(points=tuple(points))
    verdicts = {point.outcome.verdict for point in points if point.outcome is not None}
    if not verdicts:
        return None
    if facts.missing:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_INCOMPLETE, facts=facts)
    if len(verdicts) > 1:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_DISAGREES, facts=facts)
    return Outcome(verdict=verdicts.pop(), reason=Reason.RANGE_AGREES, facts=facts)


def _together(measurements: Sequence[Measurement]) -> Measurement:
    """One measurement of all points; each launch counts once."""
    estimates = [measurement.estimate for measurement in measurements]
    intervals = [estimate.interval for estimate in estimates if estimate.interval is not None]
    around = None
    if len(intervals) == len(estimates):
        around = Interval(
            min(interval.low for interval in intervals),
            max(interval.high for interval in intervals),
            min(interval.coverage for interval in intervals),
            Method.AROUND_POINTS,
            (len(intervals),),
            (intervals[0],),
        )
    counts = [estimate.n for estimate in estimates if estimate.n is not None]
    estimate = Estimate(
        median([estimate.ours for estimate in estimates]),
        around,
        min(counts, default=None),
        tuple(value for estimate in estimates for value in estimate.values),
    )
    runs = tuple(dict.fromkeys(run for measurement in measurements for run in measurement.runs))
    sides = tuple(side for measurement in measurements for side in measurement.sides)
    return Measurement(estimate, runs, _base(measurements), sides)


def _base(measurements: Sequence[Measurement]) -> BaseOut | None:
    """The base of the ratios, with the median of its values over the range."""
    bases = [measurement.base for measurement in measurements if measurement.base is not None]
    if not bases:
        return None
    values = [base.value for base in bases if base.value is not None]
    return bases[0].model_copy(update={"value": median(values) if values else None, "n": min(base.n for base in bases)})
