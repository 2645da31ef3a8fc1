"""The figures and tables of `transfer` and `collective`: transports by message size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from scaleproof.claims.metrics import by_size
from scaleproof.report.attained import beside
from scaleproof.report.data import Run
from scaleproof.report.figures.sizes import SizePoint, sizes
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import Summary, arm, by_arm, grouped, summary
from scaleproof.report.numbers import nbytes
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, legend, median_cell, section


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of `by_size`, with its title, unit and factor on the page."""

    column: str
    title: str
    unit: str
    scale: float
    better: str
    metric: str

    @property
    def axis(self) -> str:
        """Label of an axis."""
        return f"{self.title} ({self.unit}), {'higher' if self.better == '↑' else 'lower'} is better"

    @property
    def header(self) -> str:
        """Head of a column."""
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
CSV_COLUMNS = ("nbytes", "samples", "time_s", "algbw_gbs", "busbw_gbs", "first_s")
"""Columns of `by_size` in the CSV."""
Values = dict[str, dict[int, Summary]]
"""By arm and message size in bytes."""


class SectionKey(NamedTuple):
    """Launches with the same key share a section."""

    experiment: str
    operation: str
    ranks: int


def sections(runs: list[Run], program: str, looks: dict[str, Look]) -> list[Section]:
    """One per experiment, operation and number of ranks, few ranks first."""
    groups = grouped(runs, _key)
    experiments = list(dict.fromkeys(key.experiment for key in groups))
    ordered = sorted(groups, key=lambda key: (experiments.index(key.experiment), key.operation, key.ranks))
    return [_section(key, groups[key], program, looks) for key in ordered]


def _key(run: Run) -> SectionKey:
    assert run.record is not None
    case = run.record.case
    return SectionKey(case.experiment, str(getattr(case, "operation", "transfer")), case.ranks)


def _section(key: SectionKey, runs: list[Run], program: str, looks: dict[str, Look]) -> Section:
    experiment, operation, ranks = key
    quantities = TRANSFER if program == "transfer" else COLLECTIVE
    frames = {run.launch: by_size(run.record, run.samples) for run in runs if run.record}
    panels, tables = [], []
    for quantity in quantities:
        values = _values(runs, frames, quantity)
        label = f"{quantity.title} by message size, {operation}, {ranks} ranks"
        panels.append(Panel(quantity.title, sizes(label, series_of(values, quantity, runs), looks, quantity.axis)))
        tables.append(table_of(values, quantity, runs))
    if first := {name: summaries for name, summaries in _values(runs, frames, FIRST).items() if summaries}:
        tables.append(table_of(first, FIRST))
    return section(
        f"{experiment}-{operation}-{ranks}",
        f"{'Point to point' if program == 'transfer' else operation} by message size, {ranks} ranks",
        f"{HOW[program]} Marks are medians over launches with their 95 % interval where there are at least 6 launches.",
        [*(quantity.metric for quantity in quantities), FIRST.metric],
        panels,
        legend(looks, map(arm, runs)),
        ("experiment", "operation", "ranks", "arm", "launch", *CSV_COLUMNS),
        [
            (experiment, operation, ranks, arm(run), run.launch, *row)
            for run in runs
            for row in frames[run.launch][list(CSV_COLUMNS)].itertuples(index=False, name=None)
        ],
        runs,
        tables,
    )


def series_of(values: Values, quantity: Quantity, runs: list[Run]) -> dict[str, list[SizePoint]]:
    """The points of each arm."""
    return {
        name: [point_of(size, stats, quantity.metric, launches) for size, stats in values[name].items()]
        for name, launches in by_arm(runs).items()
        if name in values
    }


def _values(runs: list[Run], frames: dict[str, pd.DataFrame], quantity: Quantity) -> Values:
    by_arm_name: Values = {}
    for name, launches in by_arm(runs).items():
        joined = pd.concat([frames[run.launch] for run in launches], ignore_index=True)
        by_arm_name[name] = {
            int(size): summary(rows * quantity.scale)
            for size, rows in joined.dropna(subset=quantity.column).groupby("nbytes")[quantity.column]
        }
    return by_arm_name


def point_of(size: int, stats: Summary, metric: str, runs: list[Run]) -> SizePoint:
    """A mark of the arm with these launches; hollow where any of them is."""
    note = beside(runs[0].attained(metric, stats.median, size))
    return SizePoint(size, stats.median, stats.low, stats.high, any(run.hollow for run in runs), note)


def table_of(values: Values, quantity: Quantity, runs: Sequence[Run] = ()) -> Table:
    """Rows by message size, a column per arm. `runs`: launches whose machine's bound stands beside rates."""
    first = {arm(run): run for run in reversed(runs)}

    def cell(name: str, size: int) -> Cell:
        stats = values[name].get(size)
        if stats is None or name not in first:
            return median_cell(stats)
        return median_cell(stats, first[name].attained(quantity.metric, stats.median, size))

    all_sizes = sorted({size for summaries in values.values() for size in summaries})
    counts = {name: sorted({stats.n for stats in summaries.values()}) for name, summaries in values.items()}
    columns = ["message size", *(f"{name} (n = {'–'.join(map(str, counts[name]))})" for name in values)]
    rows = [Row("", [Cell(nbytes(size)), *(cell(name, size) for name in values)]) for size in all_sizes]
    return Table(f"{quantity.header}: median over n launches and its interval.", columns, rows, stacked=True)
