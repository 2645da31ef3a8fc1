"""The values of a series of rows: ours over the published one, at the place that the row has on the x axis."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.outcome import ArithmeticFacts, IntervalFacts, Region
from scaleproof.report.data import SuiteData, anchor
from scaleproof.report.figures.kinds import Mark
from scaleproof.report.headlines.form import FigureForm, SeriesForm
from scaleproof.report.numbers import bracket, significant


def marks_of_rows(
    figure: FigureForm, series: SeriesForm, rows: Mapping[str, PublishedRow], data: SuiteData
) -> tuple[Mark, ...]:
    """A mark per claim and level of evidence that has a value. Where less is better it is the published value over
    ours, so that ours is better above 1 everywhere."""
    assert figure.x is not None and figure.x.row is not None, "load_headlines refuses such a figure"
    marks = []
    for name in series.claims:
        published, x = rows[name].value, float(rows[name].x[figure.x.row])
        if published:
            found = [result for result in data.claims if result.id == name and result.ours]
            marks += [_mark(series.name, result, float(published), x) for result in found]
    return tuple(marks)


def _mark(name: str, result: ClaimResult, published: float, x: float) -> Mark:
    ends = (result.interval.low, result.interval.high) if result.interval else (None, None)
    is_lower = result.direction == "lower"
    value, *bounds = (_ratio(end, published, is_lower) for end in (result.ours, *ends))
    low, high = sorted_ends(*bounds)
    assert value is not None
    tooltip = (
        f"{name}, {result.id}: {significant(value)} {bracket(low, high)}".rstrip()
        + f" ({significant(result.ours)} {result.unit} of ours, {significant(published)} published)"
        + (f"; {result.verdict}" if result.verdict else "; not judged")
    )
    accepted = _accepted(result, published, is_lower)
    hollow = accepted is None
    return Mark(x, value, low, high, result.evidence, hollow, tooltip, f"#claim-{anchor(result.id)}", accepted=accepted)


def _ratio(value: float | None, published: float, is_lower: bool) -> float | None:
    if value is None:
        return None
    if not is_lower:
        return value / published
    return published / value if value else math.inf


def sorted_ends(one: float | None, other: float | None) -> tuple[float | None, float | None]:
    """Both ends of an interval, the lower one first."""
    if one is None or other is None:
        return None, None
    return min(one, other), max(one, other)


def _accepted(result: ClaimResult, published: float, is_lower: bool) -> tuple[float, float] | None:
    """What the claim's rule accepts, as ratios like those of the marks; None for what is not judged."""
    facts = result.outcome.facts if result.outcome else None
    region: Region | None = facts.region if isinstance(facts, ArithmeticFacts | IntervalFacts) else None
    if region is None or region.times_base:  # not comparable with the published value
        return None
    ends = (_ratio(end, published, is_lower) for end in (region.low, region.high))
    low, high = sorted_ends(*ends)
    return None if low is None or high is None else (low, high)
