"""Claims that are judged at several points (`over`: fields of the case): in every case that they are about, or over the
range of a condition of which the true value is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.launch_pool import Pool, chosen
from scaleproof.claims.outcome import WORST_FIRST, Outcome, PointFacts, RangeFacts, Reason
from scaleproof.claims.question import Measurement
from scaleproof.claims.verdict_rules import Estimate
from scaleproof.core.record_schema import Evidence
from scaleproof.stats.intervals import Interval, Method, median

Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sides:
    """What a claim or its negative control compares: the selected cases, those that a ratio is taken against, and the
    fields by whose values they are judged one by one."""

    select: Mapping[str, Any]
    against: Mapping[str, Any] | None
    over: Sequence[str] = ()

    def at(self, point: Point) -> Sides:
        """The sides at one point."""
        against = None if self.against is None else {**self.against, **point}
        return Sides({**self.select, **point}, against)


@dataclass(frozen=True, slots=True)
class Combined:
    """All points together: the median of their values with an interval around all their intervals, and the verdict that
    follows from theirs."""

    measurement: Measurement
    outcome: Outcome | None


def points(pool: Pool, sides: Sides, evidence: Evidence) -> list[dict[str, Any]]:
    """Every combination of the values of the fields `over` among the selected cases of the plan that are simulated, or
    among those that are run, as `evidence` says."""
    simulated = evidence == "simulated"
    planned = [
        launch.case
        for launch in pool.planned
        if chosen(launch.case, sides.select) and launch.case.plugin("fabric").predicted == simulated
    ]
    combinations = {tuple(case.value(field) for field in sides.over) for case in planned}
    return [dict(zip(sides.over, values, strict=True)) for values in sorted(combinations, key=str)]


def judged(
    points: Sequence[Point],
    measure: Callable[[Point], Measurement | None],
    decide: Callable[[Estimate], Outcome | None],
    unknown: bool,
) -> Combined | None:
    """Measure and decide at each point; None when no point has a value. `unknown`: which point is the true one is not
    known, and the claim holds where all agree; else it is about every point, and one that is refuted refutes it."""
    if len(points) == 1 and not unknown:
        alone = measure(points[0])
        return None if alone is None else Combined(alone, decide(alone.estimate))
    by_point = [(point, measure(point)) for point in points]
    measurements = [measurement for _, measurement in by_point if measurement is not None]
    if not measurements:
        return None
    by_verdict = [
        PointFacts(at=dict(point), outcome=None if measurement is None else decide(measurement.estimate))
        for point, measurement in by_point
    ]
    facts = RangeFacts(points=tuple(by_verdict), unknown=unknown)
    if all(point.outcome is None for point in facts.points):
        return Combined(_combined(measurements), None)
    return Combined(_combined(measurements), _agreement(facts) if unknown else _worst(facts))


def _agreement(facts: RangeFacts) -> Outcome:
    """The verdict that all points of a range share."""
    verdicts = {point.outcome.verdict for point in facts.points if point.outcome is not None}
    if facts.missing:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_INCOMPLETE, facts=facts)
    if len(verdicts) > 1:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_DISAGREES, facts=facts)
    return Outcome(verdict=verdicts.pop(), reason=Reason.RANGE_AGREES, facts=facts)


def _worst(facts: RangeFacts) -> Outcome:
    """The verdict about every case: one that is refuted refutes it, whatever the others are."""
    verdicts = {point.outcome.verdict for point in facts.points if point.outcome is not None}
    if facts.missing and "not reproduced" not in verdicts:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_INCOMPLETE, facts=facts)
    if len(verdicts) == 1 and not facts.missing:
        return Outcome(verdict=verdicts.pop(), reason=Reason.RANGE_AGREES, facts=facts)
    return Outcome(verdict=min(verdicts, key=WORST_FIRST.index), reason=Reason.POINT_DECIDES, facts=facts)


def _combined(measurements: Sequence[Measurement]) -> Measurement:
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
    floors = [estimate.floor for estimate in estimates if estimate.floor is not None]
    estimate = Estimate(
        median([estimate.ours for estimate in estimates]),
        around,
        min(counts, default=None),
        tuple(value for estimate in estimates for value in estimate.values),
        floor=max(floors, default=None),
        floor_unknown=any(estimate.floor_unknown for estimate in estimates),
    )
    runs = tuple(dict.fromkeys(run for measurement in measurements for run in measurement.runs))
    sides = tuple(side for measurement in measurements for side in measurement.sides)
    return Measurement(estimate, runs, _base(measurements), sides)


def _base(measurements: Sequence[Measurement]) -> BaseOut | None:
    """The base of the ratios, with the median of its values over the points."""
    bases = [measurement.base for measurement in measurements if measurement.base is not None]
    if not bases:
        return None
    values = [base.value for base in bases if base.value is not None]
    return bases[0].model_copy(update={"value": median(values) if values else None, "n": min(base.n for base in bases)})
