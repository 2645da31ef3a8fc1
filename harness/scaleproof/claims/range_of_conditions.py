"""A claim whose conditions are known as a range only (`over`: fields of the case) is judged at every point of it, and
holds where every point agrees."""

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
class Whole:
    """All points together: the middle of what they give with an interval around all their intervals, and the verdict
    that they share."""

    found: Measurement
    outcome: Outcome | None


def points(pool: Pool, select: Mapping[str, Any], fields: Sequence[str], evidence: Evidence) -> list[dict[str, Any]]:
    """Every combination of the fields' values that the plan has among the selected cases; a range that is simulated
    need not be run, nor the reverse."""
    simulated = evidence == "simulated"
    planned = [
        launch.case
        for launch in pool.planned
        if chosen(launch.case, select) and (launch.case.plugin("fabric").predicted) == simulated
    ]
    found = {tuple(case.value(field) for field in fields): None for case in planned}
    return [dict(zip(fields, values, strict=True)) for values in sorted(found, key=str)]


def judged(
    where: Sequence[Point], measure: Callable[[Point], Measurement | None], decide: Callable[[Estimate], Outcome | None]
) -> Whole | None:
    """Ask and decide at each point; None when no point has a value."""
    answers = [(point, measure(point)) for point in where]
    known = [found for _, found in answers if found is not None]
    if not known:
        return None
    outcomes = [
        PointFacts(at=dict(point), outcome=None if found is None else decide(found.estimate))
        for point, found in answers
    ]
    return Whole(_together(known), _shared(outcomes))


def _shared(outcomes: Sequence[PointFacts]) -> Outcome | None:
    """The verdict that all points share."""
    facts = RangeFacts(points=tuple(outcomes))
    verdicts = {point.outcome.verdict for point in outcomes if point.outcome is not None}
    if not verdicts:
        return None
    if facts.missing:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_INCOMPLETE, facts=facts)
    if len(verdicts) > 1:
        return Outcome(verdict="inconclusive", reason=Reason.RANGE_DISAGREES, facts=facts)
    return Outcome(verdict=verdicts.pop(), reason=Reason.RANGE_AGREES, facts=facts)


def _together(found: Sequence[Measurement]) -> Measurement:
    """Each launch counts once."""
    estimates = [one.estimate for one in found]
    intervals = [estimate.interval for estimate in estimates]
    around = None
    if all(intervals):
        known = [interval for interval in intervals if interval is not None]
        around = Interval(
            min(interval.low for interval in known),
            max(interval.high for interval in known),
            min(interval.coverage for interval in known),
            Method.AROUND_POINTS,
            (len(known),),
            (known[0],),
        )
    counts = [estimate.n for estimate in estimates if estimate.n is not None]
    whole = Estimate(
        median([estimate.ours for estimate in estimates]),
        around,
        min(counts, default=None),
        tuple(value for one in estimates for value in one.values),
    )
    runs = tuple(dict.fromkeys(run for one in found for run in one.runs))
    sides = tuple((label, values) for one in found for label, values in one.sides)
    return Measurement(whole, runs, _base(found), sides)


def _base(found: Sequence[Measurement]) -> BaseOut | None:
    """What ratios were taken against, in the middle of the range."""
    bases = [one.base for one in found if one.base is not None]
    if not bases:
        return None
    values = [base.value for base in bases if base.value is not None]
    return bases[0].model_copy(update={"value": median(values) if values else None, "n": min(base.n for base in bases)})
