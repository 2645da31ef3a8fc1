"""Reads a suite's figures.yaml and checks every name in it. The error for the first mistake is one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_yaml import Claim, load_claims, load_published
from scaleproof.claims.learning_curve import Axis
from scaleproof.claims.metrics import Metric
from scaleproof.claims.planned_cases import PlannedCases
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.report.figures.kinds import kinds
from scaleproof.report.headlines.form import FigureForm, SeriesForm
from scaleproof.spec.case_layers import every_key
from scaleproof.spec.locate import Document, Key, read_document
from scaleproof.spec.messages import brief, form_error
from scaleproof.spec.registry import nearest
from scaleproof.spec.suite import Suite

FILE = "figures.yaml"
EVENTS = {"final_loss": "loss", "test_loss": "test_loss", "test_accuracy": "test_accuracy"}
"""Metrics whose curve can be drawn, with the event that has it."""
SECONDS = "seconds"
"""Name of the x axis of curves over time."""
SIZE = "nbytes"
"""Name of the x axis of metrics per message size."""


@dataclass(frozen=True, slots=True)
class Headlines:
    """The figures of a suite, and the claims, published rows and metrics that they name."""

    figures: tuple[FigureForm, ...]
    claims: Mapping[str, Claim]
    rows: Published
    metrics: Mapping[str, Metric]


def load_headlines(suite: Suite) -> Headlines | None:
    """The suite's figures in the order of figures.yaml; None without the file. SpecError with file, line and key for
    the first mistake."""
    if not (suite.folder / FILE).exists():
        return None
    document = read_document(suite.folder / FILE)
    entries = document.data or []
    if not isinstance(entries, list):
        raise document.error((), "not a list of figures, each '- id: ...'")
    figures = tuple(_parse(document, index, entry) for index, entry in enumerate(entries))
    claims = {claim.form.id: claim for claim in load_claims(suite)}
    headlines = Headlines(figures, claims, load_published(suite.folder), suite_metrics(suite.folder))
    ids: set[str] = set()
    for index, figure in enumerate(figures):
        if figure.id in ids:
            raise document.error((index, "id"), f"{figure.id!r} is there twice")
        ids.add(figure.id)
        _check(document, index, figure, suite, headlines)
    return headlines


def _parse(document: Document, index: int, entry: Any) -> FigureForm:
    try:
        return FigureForm.model_validate(entry)
    except ValidationError as failed:
        raise form_error(document, (index,), FigureForm, failed) from None


def _expect(document: Document, key: Key, kind: str, name: str, names: Iterable[str]) -> None:
    choices = list(names)
    if name not in choices:
        raise document.error(key, f"unknown {kind} {name!r}; {nearest(name, choices)}")


def _case_fields() -> list[str]:
    return sorted(every_key())


def _check(document: Document, index: int, figure: FigureForm, suite: Suite, headlines: Headlines) -> None:
    _expect(document, (index, "kind"), "kind of figure", figure.kind, kinds())
    _check_of(document, index, figure)
    if figure.experiment is not None:
        _expect(document, (index, "experiment"), "experiment", figure.experiment, suite.experiments)
    if figure.metric is not None:
        _expect(document, (index, "metric"), "metric", figure.metric, headlines.metrics)
    _check_metric(document, index, figure, headlines.metrics)
    _check_alone(document, index, figure, suite, headlines.metrics)
    _check_x(document, index, figure)
    if figure.y.lines and not kinds()[figure.kind].curves:
        raise document.error((index, "y", "lines"), f"kind {figure.kind!r} draws no curves; leave it out")
    _check_rows(document, index, figure)
    _check_sources(document, index, figure)
    for position, name in enumerate(figure.over):
        _expect(document, (index, "over", position), "field of a case", name, _case_fields())
    for name in figure.published_at:
        _expect(document, (index, "published_at", name), "field of a case", name, _case_fields())
    for position, name in enumerate(figure.claims):
        _expect(document, (index, "claims", position), "claim", name, headlines.claims)
    for position, series in enumerate(figure.series):
        _check_series(document, (index, "series", position), figure, series, headlines)


def _check_of(document: Document, index: int, figure: FigureForm) -> None:
    """A kind computes what it draws, or draws series."""
    form = kinds()[figure.kind].of
    if form is None and figure.of:
        raise document.error((index, "of"), f"kind {figure.kind!r} draws series; leave it out")
    if form is None and not figure.series:
        raise document.error((index,), f"{figure.id}: kind {figure.kind!r} needs 'series'")
    if form is not None and figure.series:
        raise document.error((index, "series"), f"kind {figure.kind!r} computes what it draws: give 'of' alone")
    if form is not None:
        try:
            form.model_validate(figure.of)
        except ValidationError as failed:
            raise form_error(document, (index, "of"), form, failed) from None


def _check_series(document: Document, key: Key, figure: FigureForm, series: SeriesForm, headlines: Headlines) -> None:
    if series.claim is not None:
        _expect(document, (*key, "claim"), "claim", series.claim, headlines.claims)
    for position, name in enumerate(series.claims):
        _expect(document, (*key, "claims", position), "claim", name, headlines.claims)
        _check_place(document, (*key, "claims", position), figure, name, headlines.rows)
    for part, selection in (("select", series.select), ("against", series.against or {})):
        for name in selection:
            _expect(document, (*key, part, name), "field of a case", name, _case_fields())
    for position, name in enumerate(series.published):
        _expect(document, (*key, "published", position), "row of published.yaml", name, headlines.rows)
    _check_units(document, key, figure, series, headlines)


def _check_sources(document: Document, index: int, figure: FigureForm) -> None:
    """Claims over what their rows count are drawn by kinds that say so, and by no other."""
    kind = kinds()[figure.kind]
    draws = kind.claims
    for position, series in enumerate(figure.series):
        if (kind.curves or kind.passes) and (not series.select or series.against is not None):
            message = f"kind {figure.kind!r} draws launches: give 'select' alone"
            raise document.error((index, "series", position), message)
        if kind.passes and series.published:
            message = f"kind {figure.kind!r} has no place for rows of the paper"
            raise document.error((index, "series", position, "published"), message)
        if draws and not series.claims:
            message = f"kind {figure.kind!r} draws claims over what their rows count: give 'claims'"
            raise document.error((index, "series", position), message)
        if series.claims and not draws:
            able = ", ".join(name for name, kind in kinds().items() if kind.claims)
            raise document.error((index, "series", position, "claims"), f"drawn by kind {able} only")
    if draws and figure.x is not None and figure.x.row is None:
        raise document.error((index, "x"), f"kind {figure.kind!r} needs 'row': the key of each row's x that it counts")


def _check_place(document: Document, key: Key, figure: FigureForm, name: str, rows: Published) -> None:
    """A claim that is drawn has a row, and the row a number where the figure draws it."""
    if name not in rows:
        raise document.error(key, f"claim {name!r} has no row in published.yaml to stand beside")
    counted = None if figure.x is None else figure.x.row
    if counted is None:
        return
    if counted not in rows[name].x:
        raise document.error(key, f"row {name!r} has no number {counted!r} in its x")
    place = rows[name].x[counted]
    if isinstance(place, bool) or not isinstance(place, int | float):
        drawn = f"{brief(place)} is not a number, and {document.place(key)} draws it"
        raise rows.error(name, ("x", counted), drawn)


def _check_metric(document: Document, index: int, figure: FigureForm, metrics: Mapping[str, Metric]) -> None:
    if kinds()[figure.kind].passes:
        if figure.metric is not None:
            raise document.error((index, "metric"), f"kind {figure.kind!r} draws passes, no metric; leave it out")
        return
    if figure.metric is None:
        if any(series.select for series in figure.series):
            raise document.error((index,), f"{figure.id}: series that 'select' need 'metric'")
        return
    metric = metrics[figure.metric]
    if kinds()[figure.kind].curves:
        of_curves = {*EVENTS, *(name for name, each in metrics.items() if each.curve)}
        _expect(document, (index, "metric"), "metric of a curve", metric.name, sorted(of_curves))
        return
    if metric.launch is None and metric.size is None and metric.ratio_of is None:
        raise document.error(
            (index, "metric"),
            f"metric {metric.name!r} has no value per launch; draw the claims that use it: series with 'claim'",
        )
    if metric.ratio_of and any(series.select and series.against is None for series in figure.series):
        raise document.error((index, "metric"), f"metric {metric.name!r} compares: every series gives 'against'")
    if metric.size and (figure.x is None or figure.x.field != SIZE):
        raise document.error((index, "metric"), f"metric {metric.name!r} is per message size: x has 'field: {SIZE}'")


def _draws_times(figure: FigureForm, metrics: Mapping[str, Metric]) -> bool:
    kind = kinds()[figure.kind]
    if kind.passes or (figure.metric is not None and metrics[figure.metric].timing):
        return True
    return kind.curves and figure.x is not None and figure.x.field == SECONDS


def _check_alone(
    document: Document, index: int, figure: FigureForm, suite: Suite, metrics: Mapping[str, Metric]
) -> None:
    """As for claims: what comes from clocks is of launches beside which nothing else ran."""
    if figure.experiment is None or not _draws_times(figure, metrics):
        return
    key, instead = ("experiment", "") if figure.metric is None else ("metric", ", or draw another metric")
    planned = PlannedCases(suite)
    for series in figure.series:
        for side in (series.select, series.against or {}):
            if side and planned.beside_others(figure.experiment, planned.chosen(figure.experiment, side)):
                raise document.error(
                    (index, key),
                    f"figure {figure.id!r} draws times, and launches of experiment {figure.experiment!r} run beside "
                    f"others; leave out its 'timed: false'{instead}",
                )


def _check_x(document: Document, index: int, figure: FigureForm) -> None:
    counted = kinds()[figure.kind].x
    if counted is None and figure.x is not None:
        raise document.error((index, "x"), f"kind {figure.kind!r} has no x axis: it has a line per series")
    if counted is not None and figure.x is None:
        raise document.error((index, "kind"), f"kind {figure.kind!r} needs 'x': {counted}")
    if figure.x is not None:
        if figure.x.log and not kinds()[figure.kind].curves:
            raise document.error(
                (index, "x", "log"), f"kind {figure.kind!r} chooses the scale of its x axis; leave it out"
            )
        if kinds()[figure.kind].curves:
            _expect(document, (index, "x", "field"), "position on a curve", figure.x.field, get_args(Axis))
        else:
            _expect(document, (index, "x", "field"), "field of a case", figure.x.field, [*_case_fields(), SIZE])
    if figure.x is not None and any(series.claim for series in figure.series):
        raise document.error((index, "series"), "a claim has no place on an x axis; choose a kind without one")


def _check_rows(document: Document, index: int, figure: FigureForm) -> None:
    if kinds()[figure.kind].rows and figure.rows is None:
        raise document.error((index, "kind"), f"kind {figure.kind!r} needs 'rows': the field that its rows show")
    if figure.rows is not None and not kinds()[figure.kind].rows:
        raise document.error((index, "rows"), f"kind {figure.kind!r} has no rows of a field; leave it out")
    if figure.rows is not None:
        _expect(document, (index, "rows"), "field of a case", figure.rows, _case_fields())


def _check_units(document: Document, key: Key, figure: FigureForm, series: SeriesForm, headlines: Headlines) -> None:
    """All claims of a figure must have the same unit, since they share an axis."""
    if series.claim is None:
        return
    first = next(other.claim for other in figure.series if other.claim in headlines.claims)
    assert first is not None, "this series has a claim itself"
    unit, other = (_unit(headlines.claims[name], figure.y.percent_as_ratio) for name in (series.claim, first))
    if unit != other:
        raise document.error(
            (*key, "claim"), f"{series.claim!r} is in {unit!r}, {first!r} in {other!r}: they share no axis"
        )


def _unit(claim: Claim, percent_as_ratio: bool) -> str:
    return "x" if percent_as_ratio and claim.unit == "%" else claim.unit
