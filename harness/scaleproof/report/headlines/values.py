"""The values of a headline figure: from verdicts, or from the launches that a series selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.claims_file import ClaimResult, Reduction
from scaleproof.claims.compute_limit import limit_of, limit_of_ratio
from scaleproof.claims.finished_launch import times_count
from scaleproof.claims.launch_choice import in_blocks
from scaleproof.claims.launch_details import reductions
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.core.record_schema import Record
from scaleproof.report.attained import beside
from scaleproof.report.data import Run, SuiteData, anchor
from scaleproof.report.estimates import Estimate, InCampaign, around, of_launches, of_predictions, ratio_of_launches
from scaleproof.report.figures.kinds import Launch, Mark, PublishedPoint
from scaleproof.report.groups import grouped
from scaleproof.report.headlines.form import FigureForm, SeriesForm, XAxis
from scaleproof.report.headlines.load import SIZE
from scaleproof.report.numbers import bracket, nbytes, significant
from scaleproof.report.verdicts import PROVENANCE
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.never import is_never, worst


@dataclass(frozen=True, slots=True)
class Measured:
    """A launch with its value."""

    run: Run
    value: float


class SeriesMarks(NamedTuple):
    """The marks of a series, and all launches that they come from."""

    marks: tuple[Mark, ...]
    runs: list[Run]


def marks_of_claim(figure: FigureForm, series: SeriesForm, metric: Metric | None, data: SuiteData) -> tuple[Mark, ...]:
    """A mark per level of evidence at which the claim has a value. `metric`: the claim's."""
    results = [result for result in data.claims if result.id == series.claim and result.ours is not None]
    return tuple(_mark_of_claim(figure, series.name, result, metric, data) for result in results)


def _mark_of_claim(figure: FigureForm, name: str, result: ClaimResult, metric: Metric | None, data: SuiteData) -> Mark:
    assert result.ours is not None
    ends = (result.interval.low, result.interval.high) if result.interval else (None, None)
    value, low, high = (_in_unit(figure, result.unit, number) for number in (result.ours, *ends))
    assert value is not None
    tooltip = f"{name}, {result.evidence_text or 'arithmetic'}: {significant(value)} {bracket(low, high)}".rstrip()
    tooltip += beside(data.attained(result))
    evidence = None if metric is not None and metric.predicts else result.evidence
    href = f"#claim-{anchor(result.id)}"
    launches = set(result.runs)
    reduced = _reduced([run for run in data.runs if run.launch in launches], metric)
    hollow, floor = evidence != "measured", result.noise_floor
    return Mark(None, value, low, high, evidence, hollow, tooltip, href, floor, reduced=reduced)


def _in_unit(figure: FigureForm, unit: str, value: float | None) -> float | None:
    """The value on the figure's axis: a gain in percent becomes a ratio where the figure says so."""
    if value is None or not (figure.y.percent_as_ratio and unit == "%"):
        return value
    return 1 + value / 100


def runs_of(figure: FigureForm, select: Mapping[str, Any], data: SuiteData) -> list[Run]:
    """The launches of the figure's experiment that ended well and that a claim with this `select` could use."""
    return [
        run
        for run in data.runs
        if run.status == "ok"
        and run.record is not None
        and run.record.case.experiment == figure.experiment
        and times_count(run.record)
        and chosen(run.record.case, select)
    ]


def marks_of_launches(figure: FigureForm, series: SeriesForm, metric: Metric, data: SuiteData) -> SeriesMarks:
    """A mark per value of the x axis and level of evidence, and the launches of all marks. No mark where most launches
    have no number."""
    selected = runs_of(figure, series.select, data)
    base = [] if series.against is None else runs_of(figure, series.against, data)
    marks: list[Mark] = []
    used: list[Run] = []
    for (row, x), runs in _places(figure, selected).items():
        for same_level in grouped(runs, lambda run: _record(run).evidence).values():
            mark = _mark(figure, series, metric, same_level, base, x)
            if mark is not None:
                marks.append(replace(mark, row=row))
                used += same_level
    return SeriesMarks(tuple(marks), list({run.launch: run for run in used}.values()))


def _places(figure: FigureForm, runs: Sequence[Run]) -> dict[tuple[float | None, float | None], list[Run]]:
    """The launches at each place of the figure: by row (None where it has no rows) and x."""
    rows = grouped(runs, lambda run: _field(run, figure.rows) if figure.rows else None)
    return {
        (row, x): [run for run in of_row if _is_at(figure.x, run, x)]
        for row, of_row in rows.items()
        for x in _x_values(figure.x, of_row)
    }


def _x_values(axis: XAxis | None, runs: Sequence[Run]) -> list[float | None]:
    """The values of the x field that the launches have."""
    if axis is None:
        return [None]
    if axis.field == SIZE:
        return sorted({size for run in runs for size in getattr(_record(run).case, "sizes", ())})
    values = {_record(run).case.value(axis.field) for run in runs}
    return sorted(value for value in values if value is not None)


def _is_at(axis: XAxis | None, run: Run, x: float | None) -> bool:
    case = _record(run).case
    if axis is None:
        return True
    return x in getattr(case, "sizes", ()) if axis.field == SIZE else case.value(axis.field) == x


def _mark(
    figure: FigureForm, series: SeriesForm, metric: Metric, runs: Sequence[Run], base: Sequence[Run], x: float | None
) -> Mark | None:
    level = _record(runs[0]).evidence
    size = int(x) if x is not None and figure.x is not None and figure.x.field == SIZE else None
    points: list[Estimate] = []
    launches: list[Launch] = []
    for same in grouped(runs, lambda run: tuple(_field(run, name) for name in figure.over)).values():
        ours = _values(same, metric, size)
        if series.against is None:
            points += [_absolute(metric, ours)] if ours else []
            launches += [_launch(series.name, each, metric, size) for each in ours if not is_never(each.value)]
        elif ours:
            theirs = _values(_base_of(same[0], base, figure), metric, size)
            points += [_ratio(figure, metric, ours, theirs)] if theirs else []
            launches += _ratios_of_seeds(figure, series.name, metric, ours, theirs)
    if not points:
        return None
    value, low, high = around(points).minus(1.0 if figure.y.difference else 0.0)
    if is_never(value):
        return None
    if any(end is not None and is_never(end) for end in (low, high)):
        low, high = None, None
    offset = figure.x.offset if figure.x is not None else 0
    shown_x = None if x is None else x + offset
    tooltip = f"{series.name}{_x_text(size, shown_x)}, {level}: {significant(value)} {bracket(low, high)}".rstrip()
    note = beside(runs[0].attained(metric.name, value, size)) if series.against is None else ""
    tooltip += note
    hollow = any(run.hollow for run in runs)
    href = f"runs/{runs[0].launch}.html"
    return Mark(
        shown_x, value, low, high, level, hollow, tooltip, href, None, tuple(launches), _reduced(runs, metric), note
    )


def _reduced(runs: Sequence[Run], metric: Metric | None) -> tuple[Reduction, ...]:
    return reductions((run.record for run in runs if run.record), metric)


def _x_text(size: int | None, x: float | None) -> str:
    if x is None:
        return ""
    return f" at {nbytes(size) if size is not None else significant(x)}"


def _launch(name: str, measured: Measured, metric: Metric, size: int | None) -> Launch:
    tooltip = f"{name}, launch {measured.run.launch}: {significant(measured.value)}"
    tooltip += beside(measured.run.attained(metric.name, measured.value, size))
    return Launch(measured.value, measured.run.hollow, tooltip, f"runs/{measured.run.launch}.html")


def _ratios_of_seeds(
    figure: FigureForm, name: str, metric: Metric, ours: Sequence[Measured], base: Sequence[Measured]
) -> list[Launch]:
    """Of simulated launches with seeds of their own: each launch against the base's with the same seed,
    where both have a number."""
    if not all(_record(each.run).sampled for each in (*ours, *base)):
        return []
    ratios, value_of = [], metric.ratio_of or metric.name
    for one, other in in_blocks(ours, base, lambda measured: _record(measured.run).block):
        above, below = (other.run, one.run) if figure.y.inverse else (one.run, other.run)
        numerator, denominator = above.metric(value_of), below.metric(value_of)
        if numerator is None or not denominator:
            continue
        value = numerator / denominator - (1.0 if figure.y.difference else 0.0)
        tooltip = f"{name}, launches {one.run.launch} and {other.run.launch}: {significant(value)}"
        ratios.append(Launch(value, one.run.hollow or other.run.hollow, tooltip, f"runs/{one.run.launch}.html"))
    return ratios


def _base_of(run: Run, base: Sequence[Run], figure: FigureForm) -> list[Run]:
    """The base's launches at the same level of evidence and, if there are any, at the same point of each range; at the
    figure's level of evidence only those at the same point."""
    level = figure.base_evidence or _record(run).evidence
    same = [other for other in base if _record(other).evidence == level]
    for name in figure.over:
        alike = [other for other in same if _field(other, name) == _field(run, name)]
        same = alike if alike or figure.base_evidence else same
    return same


def _values(runs: Sequence[Run], metric: Metric, size: int | None) -> list[Measured]:
    values = [(run, _value(run, metric, size)) for run in runs]
    return [Measured(run, value) for run, value in values if value is not None]


def _value(run: Run, metric: Metric, size: int | None) -> float | None:
    measured = METRICS[metric.ratio_of] if metric.ratio_of else metric
    if measured.size is None:
        value = run.metric(measured.name)
        if value is None and measured.instead is not None and measured.instead(_record(run), run.samples):
            return worst(measured.direction == "higher")
        return value
    return None if size is None else measured.by_size(_record(run), run.samples).get(size)


def _absolute(metric: Metric, values: Sequence[Measured]) -> Estimate:
    if _is_predicted(values[0].run):
        most = limit_of(metric.name, (_record(measured.run) for measured in values))
        return of_predictions(_by_repetition(values), most)
    return of_launches(_in_campaigns(values))


def _ratio(figure: FigureForm, metric: Metric, ours: Sequence[Measured], base: Sequence[Measured]) -> Estimate:
    above, below = (base, ours) if figure.y.inverse else (ours, base)
    if figure.base_evidence is not None:
        of = METRICS[metric.ratio_of] if metric.ratio_of else metric
        return _absolute(of, above).by(_absolute(of, below))
    if _is_predicted(ours[0].run):
        most = limit_of_ratio(metric.ratio_of or metric.name, _of_records(above), _of_records(below))
        ratio = of_predictions(predictions.ratios(_by_repetition(above), _by_repetition(below)), most)
    elif {measured.run.launch for measured in ours} == {measured.run.launch for measured in base}:
        ratio = Estimate(1.0, None, None)
    else:
        ratio = ratio_of_launches(_in_campaigns(above), _in_campaigns(below))
    times = _record(ours[0].run).case.ranks / _record(base[0].run).case.ranks if metric.scaled_by_ranks else 1
    return ratio.over(times)


def _is_predicted(run: Run) -> bool:
    """Whether its repetitions are draws from the inputs of a prediction, and no launches with seeds of their own."""
    record = _record(run)
    return record.evidence == "simulated" and not record.sampled


def _of_records(values: Sequence[Measured]) -> list[tuple[Record, float]]:
    return [(_record(measured.run), measured.value) for measured in values]


def _in_campaigns(values: Sequence[Measured]) -> list[InCampaign]:
    return [(_record(measured.run).of_campaign, measured.value) for measured in values]


def _by_repetition(values: Sequence[Measured]) -> dict[int, float]:
    """Predictions by repetition: 0 is the prediction, the others are draws from its inputs."""
    return dict(predictions.by_repetition([(_record(measured.run).plan_index, measured.value) for measured in values]))


def published_points(
    figure: FigureForm, series: SeriesForm, rows: Mapping[str, PublishedRow], known_claims: set[str]
) -> tuple[PublishedPoint, ...]:
    """The published row of the series' claim and the rows that it names, without those that have no value."""
    names = dict.fromkeys([*([series.claim] if series.claim in rows else []), *series.published])
    points = (_published(figure, rows[name], known_claims) for name in names if name is not None)
    return tuple(point for point in points if point is not None)


def _published(figure: FigureForm, row: PublishedRow, known_claims: set[str]) -> PublishedPoint | None:
    value = _in_unit(figure, row.unit, row.value)
    x = row.x.get(figure.x.row or figure.x.field) if figure.x is not None else None
    if value is None or (figure.x is not None and not isinstance(x, int | float)):
        return None
    judged = row.gate and not row.provenance.startswith("memory")
    note = "" if judged else f"; not judged: {PROVENANCE[row.provenance]}"
    href = f"#claim-{anchor(row.id)}" if row.id in known_claims else "#claims"
    return PublishedPoint(x, float(value), judged, f"the paper, {row.id}: {significant(float(value))}{note}", href)


def _record(run: Run) -> Any:
    assert run.record is not None, "only launches that left a record have values"
    return run.record


def _field(run: Run, name: str) -> Any:
    return _record(run).case.value(name)
