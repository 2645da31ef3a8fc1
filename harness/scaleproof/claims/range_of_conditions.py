"""A claim whose conditions are known as a range only (`over`: fields of the case) is judged at every point of it, and
holds where every point agrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.estimate import Found
from scaleproof.claims.launch_pool import Pool, chosen
from scaleproof.claims.verdict_rules import Estimate, Outcome, number
from scaleproof.core.record_schema import Evidence
from scaleproof.stats.intervals import Interval, median

Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Whole:
    """All points together: the middle of what they give with an interval around all their intervals, and the verdict
    that they share."""

    found: Found
    outcome: Outcome | None


def points(pool: Pool, select: Mapping[str, Any], fields: Sequence[str], evidence: Evidence) -> list[dict[str, Any]]:
    """Every combination of the fields' values that the plan has among the selected cases; a range that is simulated
    need not be run, nor the reverse."""
    simulated = evidence == "simulated"
    planned = [
        launch.case
        for launch in pool.planned
        if chosen(launch.case, select) and (launch.case.fabric == "simulated") == simulated
    ]
    found = {tuple(getattr(case, field, None) for field in fields): None for case in planned}
    return [dict(zip(fields, values, strict=True)) for values in sorted(found, key=str)]


def judged(
    where: Sequence[Point], ask: Callable[[Point], Found | None], decide: Callable[[Estimate], Outcome | None]
) -> Whole | None:
    """Ask and decide at each point; None when no point has a value."""
    answers = [(point, ask(point)) for point in where]
    known = [(point, found) for point, found in answers if found is not None]
    if not known:
        return None
    outcomes = [(point, decide(found.estimate)) for point, found in known]
    missing = [point for point, found in answers if found is None]
    return Whole(_together([found for _, found in known]), _shared(outcomes, missing))


def _shared(outcomes: Sequence[tuple[Point, Outcome | None]], missing: Sequence[Point]) -> Outcome | None:
    decided = [(point, outcome) for point, outcome in outcomes if outcome is not None]
    if not decided:
        return None
    rules = {outcome.rule for _, outcome in decided}
    told = (
        rules.pop() if len(rules) == 1 else "; ".join(f"{_words(point)}: {outcome.rule}" for point, outcome in decided)
    )
    count = len(decided) + len(missing)
    if missing:
        return Outcome(
            "inconclusive",
            f"{len(missing)} of {count} points of the range have no value ({_words(missing[0])}); {told}",
        )
    verdicts = {outcome.verdict for _, outcome in decided}
    if len(verdicts) > 1:
        return Outcome("inconclusive", f"the verdict does not hold over the whole range of {count} points; {told}")
    return Outcome(decided[0][1].verdict, f"the same at all {count} points of the range; {told}")


def _together(found: Sequence[Found]) -> Found:
    """Each launch counts once."""
    estimates = [one.estimate for one in found]
    intervals = [estimate.interval for estimate in estimates]
    around = None
    if all(intervals):
        known = [interval for interval in intervals if interval is not None]
        low, high = min(interval.low for interval in known), max(interval.high for interval in known)
        around = Interval(
            low,
            high,
            min(interval.coverage for interval in known),
            f"around {len(known)} points of a range, each a {known[0].method}",
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
    return Found(whole, runs, _base(found), sides)


def _base(found: Sequence[Found]) -> BaseOut | None:
    """What ratios were taken against, in the middle of the range."""
    bases = [one.base for one in found if one.base is not None]
    if not bases:
        return None
    values = [base.value for base in bases if base.value is not None]
    return bases[0].model_copy(update={"value": median(values) if values else None, "n": min(base.n for base in bases)})


def _words(point: Point) -> str:
    return ", ".join(
        f"{field} {number(value) if isinstance(value, float) else value}" for field, value in point.items()
    )
