"""The figures and tables of `transfer` and `collective`: transports by message size."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from scaleproof.claims.metrics import by_size
from scaleproof.report.data import Run
from scaleproof.report.figures.sizes import SizePoint, sizes
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import Summary, arm, by_arm, grouped, summary
from scaleproof.report.numbers import bracket, nbytes, significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, legend, section


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of `by_size` as it is shown."""

    column: str
    title: str
    unit: str
    scale: float
    better: str
    metric: str

    @property
    def axis(self) -> str:
        """Words for an axis."""
        return f"{self.title} ({self.unit}), {'higher' if self.better == '↑' else 'lower'} is better"

    @property
    def header(self) -> str:
        """Words for a table."""
        return f"{self.title} ({self.unit}) {self.better}"


TRANSFER = (
    Quantity("time_s", "one-way time", "µs", 1e6, "↓", "transfer_latency"),
    Quantity("algbw_gbs", "bandwidth", "GB/s", 1.0, "↑", "transfer_bandwidth"),
)
COLLECTIVE = (
    Quantity("time_s", "time", "µs", 1e6, "↓", "collective_latency"),
    Quantity("algbw_gbs", "algbw", "GB/s", 1.0, "↑", "algbw"),
    Quantity("busbw_gbs", "busbw", "GB/s", 1.0, "↑", "busbw"),
)
FIRST = Quantity("first_s", "first call of the size, in no other number", "µs", 1e6, "↓", "first_call_s")
HOW = {
    "transfer": (
        "Half of the median round trip between rank 0 and rank 1 per launch; bandwidth is the message's bytes over "
        "that time, in 10⁹ B/s."
    ),
    "collective": (
        "Time of a call is that of the slowest rank, the median over calls per launch. algbw is the array's bytes over "
        "that time; busbw multiplies it by the factor of nccl-tests, so that it compares with a link at any number of "
        "ranks. 10⁹ B/s."
    ),
}
Values = dict[str, dict[int, Summary]]


def sections(runs: list[Run], program: str, looks: dict[str, Look]) -> list[Section]:
    """One per experiment, operation and number of ranks."""
    return [_section(key, group, program, looks) for key, group in grouped(runs, _key).items()]


def _key(run: Run) -> tuple[str, str, int]:
    assert run.record is not None
    return run.record.case.experiment, str(getattr(run.record.case, "operation", "transfer")), run.record.case.ranks


def _section(key: tuple[str, str, int], runs: list[Run], program: str, looks: dict[str, Look]) -> Section:
    experiment, operation, ranks = key
    quantities = TRANSFER if program == "transfer" else COLLECTIVE
    frames = {run.launch: by_size(run.record, run.samples) for run in runs if run.record}
    panels, tables = [], []
    for quantity in quantities:
        values = _values(runs, frames, quantity)
        series = {
            name: [point_of(size, stats, runs, name) for size, stats in summaries.items()]
            for name, summaries in values.items()
        }
        panels.append(
            Panel(
                quantity.title,
                sizes(f"{quantity.title} by message size, {operation}, {ranks} ranks", series, looks, quantity.axis),
            )
        )
        tables.append(table_of(values, quantity))
    if first := {name: summaries for name, summaries in _values(runs, frames, FIRST).items() if summaries}:
        tables.append(table_of(first, FIRST))
    rows = [
        (experiment, operation, ranks, arm(run), run.launch, *row)
        for run in runs
        for row in frames[run.launch][["nbytes", "samples", "time_s", "algbw_gbs", "busbw_gbs", "first_s"]].itertuples(
            index=False, name=None
        )
    ]
    columns = (
        "experiment",
        "operation",
        "ranks",
        "arm",
        "launch",
        "nbytes",
        "samples",
        "time_s",
        "algbw_gbs",
        "busbw_gbs",
        "first_s",
    )
    title = f"{'Point to point' if program == 'transfer' else operation} by message size, {ranks} ranks"
    how = (
        f"{HOW[program]} Marks are medians over launches with their 95 % interval where there are at least 6 launches."
    )
    metrics = [*(quantity.metric for quantity in quantities), FIRST.metric]
    return section(
        f"{experiment}-{operation}-{ranks}",
        title,
        how,
        metrics,
        panels,
        legend(looks, map(arm, runs)),
        columns,
        rows,
        runs,
        tables,
    )


def _values(runs: list[Run], frames: dict[str, pd.DataFrame], quantity: Quantity) -> Values:
    by_arm_name: Values = {}
    for name, launches in by_arm(runs).items():
        joined = pd.concat([frames[run.launch] for run in launches], ignore_index=True)
        by_arm_name[name] = {
            int(size): summary(rows * quantity.scale)
            for size, rows in joined.dropna(subset=quantity.column).groupby("nbytes")[quantity.column]
        }
    return by_arm_name


def point_of(size: int, stats: Summary, runs: list[Run], name: str) -> SizePoint:
    """A mark of an arm; hollow where any of its launches is."""
    return SizePoint(size, stats.median, stats.low, stats.high, any(run.hollow for run in runs if arm(run) == name))


def table_of(values: Values, quantity: Quantity) -> Table:
    """Rows by message size, a column per arm."""
    every = sorted({size for summaries in values.values() for size in summaries})
    counts = {name: sorted({one.n for one in summaries.values()}) for name, summaries in values.items()}
    columns = ["message size", *(f"{name} (n = {'–'.join(map(str, counts[name]))})" for name in values)]
    rows = [Row("", [Cell(nbytes(size)), *(_cell(values[name].get(size)) for name in values)]) for size in every]
    return Table(f"{quantity.header}: median over n launches and its interval.", columns, rows, stacked=True)


def _cell(stats: Summary | None) -> Cell:
    return Cell("–") if stats is None else Cell(significant(stats.median), bracket(stats.low, stats.high))
