"""The tables of a suite's own programs: its metrics by arm, with interval and number of launches."""

from __future__ import annotations

from itertools import product

from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.report.data import Run, SuiteData
from scaleproof.report.figures.sizes import sizes
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import Summary, arm, by_arm, grouped, summary
from scaleproof.report.messages import Quantity, series_of, table_of
from scaleproof.report.numbers import nbytes
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, legend, median_cell, section
from scaleproof.spec.experiment import Experiment

HOW = "Metrics of this suite alone: medians over launches with their 95 % interval where there are at least 6 launches."
SWEPT = 3
"""A metric with at least so many message sizes has a figure and a table over them."""
ARROW = {"higher": "↑", "lower": "↓", None: ""}


Column = tuple[str, int | None]
"""A metric's name and, where it is per message size, the size in bytes."""
Values = dict[str, dict[Column, float]]
"""Values by launch."""


def sections(data: SuiteData, looks: dict[str, Look]) -> list[Section]:
    """One section per experiment whose launches have values of the suite's own metrics."""
    own = {
        name: metric
        for name, metric in suite_metrics(data.suite.folder).items()
        if name not in METRICS and metric.model is None
    }
    values = {run.launch: _values(run, _telling(data, run, own)) for run in data.runs if own and run.status == "ok"}
    runs = [run for run in data.runs if values.get(run.launch)]
    return [
        _section(name, _summary(data.suite.experiment(name)), group, own, values, looks)
        for name, group in grouped(runs, _experiment).items()
    ]


def _telling(data: SuiteData, run: Run, own: dict[str, Metric]) -> dict[str, Metric]:
    """The metrics that say something of a launch: beside others its clocks do not."""
    experiment = data.suite.experiment(_experiment(run))
    clocks_count = experiment.timed or (run.record is not None and experiment.clocks_count(run.record.case))
    return own if clocks_count else {name: metric for name, metric in own.items() if not metric.timing}


def _summary(experiment: Experiment) -> str:
    """What the experiment says of itself, and whether its times count."""
    summary = experiment.summary.rstrip(".")
    return (
        summary
        if experiment.timed
        else f"{summary}. Other launches ran beside measured ones, so their times are left out"
    )


def _experiment(run: Run) -> str:
    return str(run.row["experiment"])


def _values(run: Run, own: dict[str, Metric]) -> dict[Column, float]:
    by_column: dict[Column, float | None] = {}
    for name, metric in own.items():
        if metric.launch is not None:
            by_column[name, None] = run.metric(name)
        elif metric.size is not None and run.record is not None:
            by_column |= {(name, nbytes): value for nbytes, value in metric.by_size(run.record, run.samples).items()}
    return {column: value for column, value in by_column.items() if value is not None}


def _section(
    experiment: str, asked: str, runs: list[Run], own: dict[str, Metric], values: Values, looks: dict[str, Look]
) -> Section:
    """`asked`: what the experiment says of itself."""
    columns = sorted(
        {column for run in runs for column in values[run.launch]},
        key=lambda column: (list(own).index(column[0]), column[1] or 0),
    )
    swept = [name for name in own if sum(column[0] == name for column in columns) >= SWEPT]
    others = [column for column in columns if column[0] not in swept]
    panels, tables = [], [_by_arm_table(runs, others, own, values)] if others else []
    for name, (ranks, part) in product(swept, _apart(runs).items()):
        quantity = _quantity(own[name], f"{name}{ranks}")
        by_arm_and_size = {
            arm_name: stats
            for arm_name, launches in by_arm(part).items()
            if (stats := _by_size(name, launches, values, quantity.scale))
        }
        if by_arm_and_size:
            label = f"{quantity.title} by message size, {experiment}"
            is_count = quantity.unit == "1"
            picture = sizes(label, series_of(by_arm_and_size, quantity, part), looks, quantity.axis, is_count)
            panels.append(Panel(quantity.title, picture))
            tables.append(table_of(by_arm_and_size, quantity, part))
    return section(
        f"{experiment}-own",
        f"Results of experiment {experiment}",
        f"{asked.rstrip('.')}. {HOW}",
        list(dict.fromkeys(name for name, _ in columns)),
        panels,
        legend(looks, map(arm, runs)),
        ("experiment", "arm", "launch", "metric", "nbytes", "unit", "value"),
        [
            (experiment, arm(run), run.launch, name, size, own[name].unit, value)
            for run in runs
            for (name, size), value in values[run.launch].items()
        ],
        runs,
        tables,
    )


def _apart(runs: list[Run]) -> dict[str, list[Run]]:
    """Launches by number of ranks where an arm has several, few ranks first: a median over different numbers means
    nothing. The keys are what a title says of them."""
    if all(len({run.row["ranks"] for run in group}) == 1 for group in by_arm(runs).values()):
        return {"": runs}
    groups = sorted(grouped(runs, lambda run: int(run.row["ranks"])).items())
    return {f", {ranks} rank{'s' if ranks > 1 else ''}": group for ranks, group in groups}


def _quantity(metric: Metric, title: str) -> Quantity:
    """Times are shown in µs, everything else in the unit of the metric."""
    unit, scale = ("µs", 1e6) if metric.unit == "s" else (metric.unit, 1.0)
    return Quantity(metric.name, title, unit, scale, ARROW[metric.direction], metric.name)


def _by_arm_table(runs: list[Run], columns: list[Column], own: dict[str, Metric], values: Values) -> Table:
    rows = []
    for ranks, part in _apart(runs).items():
        for name, group in by_arm(part).items():
            cells = [_cell(group, column, values) for column in columns]
            rows.append(Row("", [Cell(f"{name}{ranks}"), *cells, Cell(str(len(group)))]))
    return Table(
        "Median over n launches and its interval.",
        ["arm", *(_header(own[name], size) for name, size in columns), "n"],
        rows,
        len(columns) > 4,
    )


def _cell(group: list[Run], column: Column, values: Values) -> Cell:
    """The median of a metric over the launches of an arm, and its share of what the machine can do."""
    numbers = [values[run.launch][column] for run in group if column in values[run.launch]]
    if not numbers:
        return median_cell(None)
    (name, size), stats = column, summary(numbers)
    return median_cell(stats, group[0].attained(name, stats.median, size))


def _by_size(name: str, launches: list[Run], values: Values, scale: float) -> dict[int, Summary]:
    by_nbytes: dict[int, list[float]] = {}
    for run in launches:
        for (metric, size), value in values[run.launch].items():
            if metric == name and size is not None:
                by_nbytes.setdefault(size, []).append(value * scale)
    return {size: summary(by_nbytes[size]) for size in sorted(by_nbytes)}


def _header(metric: Metric, size: int | None) -> str:
    at_size = "" if size is None else f" at {nbytes(size)}"
    return f"{metric.name}{at_size} ({metric.unit}) {ARROW[metric.direction]}".strip()
