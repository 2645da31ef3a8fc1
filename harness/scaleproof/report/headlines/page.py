"""The headline figures of a suite for its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import cast

from markupsafe import Markup

from scaleproof.claims.claims_file import ClaimResult, reduced_text, work_factor_text
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.learning_curve import Axis
from scaleproof.core.evidence_marks import SOFT_ROCE
from scaleproof.core.record_schema import Evidence
from scaleproof.report.data import Run, SuiteData, anchor
from scaleproof.report.figures.kinds import Curve, FigureKind, Iteration, Mark, Plot, Series, kinds
from scaleproof.report.figures.passes import key as passes_key
from scaleproof.report.figures.style import LegendEntry, Look, key_mark, series_looks
from scaleproof.report.headlines.form import FigureForm, SeriesForm
from scaleproof.report.headlines.load import EVENTS, Headlines, load_headlines
from scaleproof.report.headlines.missing_values import missing_values
from scaleproof.report.headlines.recorded_passes import drawn_launch
from scaleproof.report.headlines.row_values import marks_of_rows
from scaleproof.report.headlines.values import SeriesMarks, marks_of_claim, marks_of_launches, published_points, runs_of
from scaleproof.report.learning import curve_of
from scaleproof.report.level_marks import level_marks
from scaleproof.report.sections import Panel, Section, section
from scaleproof.report.verdicts import verdict_text

HOW = (
    "Bars and bands are intervals: over launches where there are at least 6, of predictions over draws from their "
    "inputs."
)
COMPUTED = "Ours is computed by a formula or a model: nothing of it was run."
PASSES_HOW = (
    "Each panel is one launch: the first that ended well, measured ones before emulated and simulated ones. It shows "
    "the last iteration after the warm-up. A bar is a pass that a rank recorded, with the number of its micro-batch, "
    "at its time on rank 0's clock; times of simulated launches are virtual."
)
PASS_COLUMNS = ("series", "launch", "evidence", "step", "rank", "micro_batch", "direction", "start_ms", "end_ms")
COLUMNS = ("series", "source", "id", "evidence", "x", "value", "low", "high", "work_factor", "row")


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim that a figure is about."""

    id: str
    href: str
    verdicts: tuple[str, ...]
    """One per level of evidence; empty if nothing was judged yet."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure with its caption, remarks and claims."""

    section: Section
    caption: str
    missing: str
    """Sentences that name the series without a value, and why; empty if all have one."""
    claims: tuple[JudgedClaim, ...]

    @property
    def tally(self) -> str:
        """How many of its claims have each verdict, in words."""
        counts = Counter(verdict for claim in self.claims for verdict in claim.verdicts or ("no verdict yet",))
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def headlines(data: SuiteData) -> list[Headline]:
    """The figures of the suite's figures.yaml, in its order."""
    declared = load_headlines(data.suite)
    return [] if declared is None else [_headline(figure, declared, data) for figure in declared.figures]


def _computed(figure: FigureForm, data: SuiteData) -> Headline:
    """A figure of a kind that computes what it draws. Nothing is drawn as long as no claim of the suite is judged."""
    kind = kinds()[figure.kind]
    assert kind.of is not None and kind.table is not None, "only for such kinds"
    of = kind.of.model_validate(figure.of)
    columns, rows = kind.table(of) if data.claims else ((), [])
    plot = Plot(figure.alt, (), figure.x.label if figure.x else "", figure.y.label, of=of)
    panels = [Panel(figure.title, kind.draw(plot))] if data.claims else []
    key = kind.key(of) if kind.key and data.claims else []
    made = section(figure.id, figure.title, COMPUTED, [], panels, key, columns, rows, [])
    return Headline(
        replace(made, hollow=False), figure.caption, "", tuple(_judged(name, data.claims) for name in figure.claims)
    )


def _headline(figure: FigureForm, declared: Headlines, data: SuiteData) -> Headline:
    if kinds()[figure.kind].of is not None:
        return _computed(figure, data)
    judged = {claim.id for claim in data.claims}
    looks = _looks(figure, data)
    series: list[Series] = []
    runs: list[Run] = []
    for form in figure.series:
        marks, used = _marks(figure, form, declared, data)
        drawn = _curves(figure, used)
        iteration: Iteration | None = None
        if kinds()[figure.kind].passes and (found := drawn_launch(used)) is not None:
            used, iteration = [found[0]], found[1]
        points = published_points(figure, form, declared.rows, judged)
        runs += used
        series.append(Series(_with_soft_roce(form.name, used), looks[form.name], marks, points, drawn, iteration))
    if elsewhere := _elsewhere(figure, runs):
        series = [replace(each, published=()) for each in series]
    return Headline(
        _section(figure, series, list({run.launch: run for run in runs}.values()), declared),
        " ".join(filter(None, (figure.caption, elsewhere, _reduced(series)))),
        missing_values(figure, series, data.claims),
        tuple(_judged(name, data.claims) for name in figure.claims),
    )


def _elsewhere(figure: FigureForm, runs: Sequence[Run]) -> str:
    """A sentence that says why no published row stands beside these launches; empty where the rows hold for all."""
    if not any(form.published for form in figure.series):
        return ""
    others: dict[str, list[str]] = {}
    for name, value in figure.published_at.items():
        cases = [run.record.case for run in runs if run.record and not chosen(run.record.case, {name: value})]
        if cases:
            others[name] = sorted({_listed(case.value(name)) for case in cases})
    if not others:
        return ""
    theirs = ", ".join(f"{name} {_listed(figure.published_at[name])}" for name in others)
    ours = ", ".join(f"{name} {' and '.join(values)}" for name, values in others.items())
    return f"The paper's values are not drawn: they hold for {theirs}, and launches here have {ours}."


def _listed(value: object) -> str:
    if isinstance(value, list):
        return " or ".join(map(_listed, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _reduced(series: Sequence[Series]) -> str:
    """A sentence on the reduced networks behind values that stand beside published ones; empty if none is reduced."""
    marks = [mark for drawn in series if drawn.published for mark in drawn.marks]
    text = reduced_text(work_factor_text(reduction for mark in marks for reduction in mark.reduced))
    return f"Ours beside the paper's is {text}." if text else ""


def _with_soft_roce(name: str, runs: Sequence[Run]) -> str:
    """The name of a series, which says so where verbs ran on a device made of software."""
    soft = [SOFT_ROCE in run.record.evidence_details for run in runs if run.record]
    if not any(soft):
        return name
    return f"{name} ({SOFT_ROCE})" if all(soft) else f"{name} (emulated: {SOFT_ROCE})"


def _marks(figure: FigureForm, form: SeriesForm, declared: Headlines, data: SuiteData) -> SeriesMarks:
    if form.claim is not None:
        launches = {launch for claim in data.claims if claim.id == form.claim for launch in claim.runs}
        metric = declared.metrics.get(declared.claims[form.claim].form.metric or "")
        marks = marks_of_claim(figure, form, metric, data)
        return SeriesMarks(marks, [run for run in data.runs if run.launch in launches])
    if form.claims:
        return SeriesMarks(marks_of_rows(figure, form, declared.rows, data), [])
    if kinds()[figure.kind].curves or kinds()[figure.kind].passes:
        return SeriesMarks((), runs_of(figure, form.select, data))
    assert figure.metric is not None, "load_headlines refuses 'select' without a metric"
    return marks_of_launches(figure, form, declared.metrics[figure.metric], data)


def _curves(figure: FigureForm, runs: Sequence[Run]) -> tuple[Curve, ...]:
    """How these launches learned, for a kind that draws it."""
    if not kinds()[figure.kind].curves:
        return ()
    event = EVENTS.get(str(figure.metric), str(figure.metric))
    found = (curve_of(run, event) for run in runs)
    return tuple(curve for curve in found if curve is not None)


def _looks(figure: FigureForm, data: SuiteData) -> dict[str, Look]:
    """Series over launches have the look of their transport; values of claims, each in its own row, all look alike."""
    if all(form.claim for form in figure.series):
        return {form.name: Look(form.name, 0, "o", 0) for form in figure.series}
    transports: dict[str, str | None] = {}
    for form in figure.series:
        run = next(iter(runs_of(figure, form.select, data)), None) if form.select else None
        transports[form.name] = None if run is None else run.row.get("transport")
    return series_looks(transports)


def _section(figure: FigureForm, series: Sequence[Series], runs: list[Run], declared: Headlines) -> Section:
    kind = kinds()[figure.kind]
    picture = _picture(figure, kind, series)
    metrics = [figure.metric] if figure.metric else []
    shown = [name for form in figure.series for name in (form.claim, *form.claims) if name]
    metrics += [str(declared.claims[name].form.metric) for name in shown]
    levels = {mark.evidence for drawn in series for mark in drawn.marks}
    levels |= {run.record.evidence for run in runs if kind.curves and run.record}
    how = PASSES_HOW if kind.passes else COMPUTED if levels == {None} else HOW
    made = section(
        figure.id,
        figure.title,
        how,
        list(dict.fromkeys(metrics)),
        [] if picture is None else [Panel(figure.title, picture)],
        _key(kind, series, levels),
        PASS_COLUMNS if kind.passes else COLUMNS,
        _pass_rows(series) if kind.passes else _rows(figure, series),
        runs,
    )
    # Bars of passes are never hollow: the title of each panel has its level of evidence.
    return replace(made, hollow=False) if kind.passes else made


def _key(kind: FigureKind, series: Sequence[Series], levels: set[Evidence | None]) -> list[LegendEntry]:
    if kind.passes:
        return passes_key()
    # Where marks stand at the places of rows, hollow ones are not judged: no entry for what is computed.
    shown = levels if kind.x is None else levels - {None}
    marks = level_marks(shown, {point.judged for drawn in series for point in drawn.published})
    if kind.x is None:
        return marks
    return [*(LegendEntry(key_mark(drawn.look), drawn.name) for drawn in series if drawn.has_ours), *marks]


def _rows(figure: FigureForm, series: Sequence[Series]) -> list[tuple[object, ...]]:
    """Rows of the CSV: our values, points of curves, and the paper's values."""
    rows = [_row(drawn.name, mark) for drawn in series for mark in drawn.marks]
    rows += [row for drawn in series for row in _curve_rows(figure, drawn)]
    rows += [
        (drawn.name, "published", point.href.removeprefix("#"), "", point.x, point.value, *[None] * 4)
        for drawn in series
        for point in drawn.published
    ]
    return rows


def _pass_rows(series: Sequence[Series]) -> list[tuple[object, ...]]:
    """Rows of the CSV for the bars of passes."""
    return [
        (drawn.name, iteration.launch, iteration.evidence, iteration.step, *astuple(each))
        for drawn in series
        if (iteration := drawn.iteration) is not None
        for each in iteration.passes
    ]


def _picture(figure: FigureForm, kind: FigureKind, series: Sequence[Series]) -> Markup | None:
    """The figure; None as long as it has no value of ours."""
    if not any(drawn.has_ours for drawn in series):
        return None
    x_label = figure.x.label if figure.x else ""
    drawable = tuple(each for each in series if each.has_ours or each.published)
    axis: Axis = cast(Axis, figure.x.field) if kind.curves and figure.x else "steps"
    log_x = figure.x is not None and figure.x.log
    y = figure.y
    lines = tuple((line.label, line.value) for line in y.lines)
    return kind.draw(Plot(figure.alt, drawable, x_label, y.label, y.log, y.ideal, axis, log_x, lines))


def _curve_rows(figure: FigureForm, series: Series) -> list[tuple[object, ...]]:
    """Rows of the CSV for the points of curves."""
    axis = figure.x.field if figure.x else "steps"
    return [
        (series.name, "ours", f"runs/{curve.launch}.html", None, x, value, *[None] * 4)
        for curve in series.curves
        for x, value in zip(getattr(curve, axis).tolist(), curve.values.tolist(), strict=True)
    ]


def _row(name: str, mark: Mark) -> tuple[object, ...]:
    """A row of the CSV; a value with a factor is of a reduced network, not comparable with the paper's."""
    factor, target = work_factor_text(mark.reduced) or None, mark.href.removeprefix("#")
    return name, "ours", target, mark.evidence, mark.x, mark.value, mark.low, mark.high, factor, mark.row


def _judged(name: str, claims: Sequence[ClaimResult]) -> JudgedClaim:
    results = [claim for claim in claims if claim.id == name]
    href = f"#claim-{anchor(name)}" if results else "#claims"
    return JudgedClaim(name, href, tuple(dict.fromkeys(verdict_text(claim) for claim in results)))
