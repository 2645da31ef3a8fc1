"""The headline figures of a suite as its page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.report.data import Run, SuiteData, anchor
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot, Series, kinds
from scaleproof.report.figures.style import Look, key_mark, series_looks
from scaleproof.report.headlines.form import FigureForm, SeriesForm
from scaleproof.report.headlines.load import Headlines, load_headlines
from scaleproof.report.headlines.values import marks_of_claim, marks_of_launches, published_points, runs_of
from scaleproof.report.level_marks import level_marks
from scaleproof.report.sections import Panel, Section, section
from scaleproof.report.verdicts import shown

HOW = (
    "Bars and bands are intervals: over launches where there are at least 6, of predictions over draws from their "
    "inputs."
)
COLUMNS = ("series", "source", "id", "evidence", "x", "value", "low", "high")


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim that a figure is about."""

    id: str
    href: str
    verdicts: tuple[str, ...]
    """One per level of evidence; empty where nothing was judged yet."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure with what stands around it."""

    section: Section
    caption: str
    missing: str
    """One line that says which series have no record yet; empty when none is missing."""
    claims: tuple[JudgedClaim, ...]


def headlines(data: SuiteData) -> list[Headline]:
    """The figures of the suite's figures.yaml, in its order."""
    known = load_headlines(data.suite)
    return [] if known is None else [_headline(figure, known, data) for figure in known.figures]


def _headline(figure: FigureForm, known: Headlines, data: SuiteData) -> Headline:
    judged = {claim.id for claim in data.claims}
    looks = _looks(figure, data)
    series: list[Series] = []
    runs: list[Run] = []
    for form in figure.series:
        marks, used = _marks(figure, form, known, data)
        runs += used
        series.append(Series(form.name, looks[form.name], marks, published_points(figure, form, known.rows, judged)))
    return Headline(
        _section(figure, series, list({run.launch: run for run in runs}.values()), known),
        figure.caption,
        _missing(series),
        tuple(_judged(name, data.claims) for name in figure.claims),
    )


def _marks(
    figure: FigureForm, form: SeriesForm, known: Headlines, data: SuiteData
) -> tuple[tuple[Mark, ...], list[Run]]:
    if form.claim is not None:
        launches = {launch for claim in data.claims if claim.id == form.claim for launch in claim.runs}
        return marks_of_claim(figure, form, data), [run for run in data.runs if run.launch in launches]
    assert figure.metric is not None, "the form refuses 'select' without a metric"
    marks, runs = marks_of_launches(figure, form, known.metrics[figure.metric], data)
    return tuple(marks), runs


def _looks(figure: FigureForm, data: SuiteData) -> dict[str, Look]:
    """Series over launches have the look of their transport; values of claims stand in rows of their own, all alike."""
    if all(form.claim for form in figure.series):
        return {form.name: Look(form.name, 0, "o", 0) for form in figure.series}
    transports: dict[str, str | None] = {}
    for form in figure.series:
        run = next(iter(runs_of(figure, form.select, data)), None) if form.select else None
        transports[form.name] = None if run is None else run.row.get("transport")
    return series_looks(transports)


def _section(figure: FigureForm, series: Sequence[Series], runs: list[Run], known: Headlines) -> Section:
    kind = kinds()[figure.kind]
    picture = _picture(figure, kind, series)
    metrics = [figure.metric] if figure.metric else []
    metrics += [str(known.claims[form.claim].form.metric) for form in figure.series if form.claim]
    key = level_marks(
        {mark.evidence for one in series for mark in one.marks},
        {point.judged for one in series for point in one.published},
    )
    if kind.x is not None:
        key = [*((key_mark(one.look), one.name) for one in series if one.marks), *key]
    rows = [_row(one.name, "ours", mark) for one in series for mark in one.marks]
    rows += [
        (one.name, "published", point.href.removeprefix("#"), "", point.x, point.value, None, None)
        for one in series
        for point in one.published
    ]
    return section(
        figure.id,
        figure.title,
        HOW,
        list(dict.fromkeys(metrics)),
        [] if picture is None else [Panel(figure.title, picture)],
        key,
        COLUMNS,
        rows,
        runs,
    )


def _picture(figure: FigureForm, kind: FigureKind, series: Sequence[Series]) -> Markup | None:
    """None while nothing of ours is there."""
    if not any(one.marks for one in series):
        return None
    x_label = figure.x.label if figure.x else ""
    drawn = tuple(one for one in series if one.marks or one.published)
    return kind.draw(Plot(figure.alt, drawn, x_label, figure.y.label, figure.y.log, figure.y.ideal))


def _row(name: str, source: str, mark: Mark) -> tuple[object, ...]:
    return name, source, mark.href.removeprefix("#"), mark.evidence, mark.x, mark.value, mark.low, mark.high


def _missing(series: Sequence[Series]) -> str:
    names = [one.name for one in series if not one.marks]
    if len(names) == len(series):
        return "No launch gives this figure a value yet."
    return f"No launch gives a value yet for: {', '.join(names)}." if names else ""


def _judged(name: str, claims: Sequence[ClaimResult]) -> JudgedClaim:
    results = [claim for claim in claims if claim.id == name]
    href = f"#claim-{anchor(name)}" if results else "#claims"
    return JudgedClaim(name, href, tuple(dict.fromkeys(shown(claim) for claim in results)))
