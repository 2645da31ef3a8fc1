"""The tables of a suite's own programs: its metrics by arm, with interval and number of launches."""

from __future__ import annotations

from harness.claims.metrics import METRICS, Metric, suite_metrics
from harness.report.data import Run, SuiteData
from harness.report.figures.style import Look
from harness.report.groups import Summary, arm, by_arm, grouped, summary
from harness.report.numbers import bracket, significant
from harness.report.sections import Cell, Row, Section, Table, legend, section

HOW = "What the suite's own metrics give: medians over launches with their 95 % interval where there are at least 6 launches."
ARROW = {"higher": "↑", "lower": "↓", None: ""}


def sections(data: SuiteData, looks: dict[str, Look]) -> list[Section]:
    """One per experiment with launches of the suite's own programs or metrics that only this suite has."""
    own = {name: metric for name, metric in suite_metrics(data.suite.folder).items() if name not in METRICS and metric.launch is not None}
    runs = [run for run in data.runs if run.status == "ok" and any(run.metric(name) is not None for name in own)]
    return [_section(experiment, found, own, looks) for experiment, found in grouped(runs, _experiment).items()]


def _experiment(run: Run) -> str:
    return str(run.row["experiment"])


def _section(experiment: str, runs: list[Run], own: dict[str, Metric], looks: dict[str, Look]) -> Section:
    present = [metric for name, metric in own.items() if any(run.metric(name) is not None for run in runs)]
    columns = ["arm", *(f"{metric.name} ({metric.unit}) {ARROW[metric.direction]}".strip() for metric in present), "n"]
    rows = [Row("", [Cell(name), *(_cell(_summary(found, metric.name)) for metric in present), Cell(str(len(found)))]) for name, found in by_arm(runs).items()]
    values = [(experiment, arm(run), run.launch, metric.name, metric.unit, run.metric(metric.name)) for run in runs for metric in present]
    header = ("experiment", "arm", "launch", "metric", "unit", "value")
    tables = [Table("Median over n launches and its interval.", columns, rows, stacked=len(present) > 4)]
    names = [metric.name for metric in present]
    return section(f"{experiment}-own", f"{experiment}: the suite's own metrics", HOW, names, [], legend(looks, map(arm, runs)), header, values, runs, tables)


def _summary(runs: list[Run], name: str) -> Summary | None:
    values = [value for run in runs if (value := run.metric(name)) is not None]
    return summary(values) if values else None


def _cell(found: Summary | None) -> Cell:
    return Cell("–") if found is None else Cell(significant(found.median), bracket(found.low, found.high))
