"""A section of a suite's page: a figure, how it was computed, from which launches, and its numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from scaleproof.calibrate.attainable import Attained
from scaleproof.core.evidence_marks import SOFT_ROCE
from scaleproof.report import csvs
from scaleproof.report.attained import beside
from scaleproof.report.data import Run
from scaleproof.report.figures.dots import Dot
from scaleproof.report.figures.split import COLOURS, HATCHES
from scaleproof.report.figures.style import LegendEntry, Look, key_mark
from scaleproof.report.groups import Summary
from scaleproof.report.numbers import bracket, significant

LONGEST_LINE = 60
"""Cells with more characters are broken into several lines."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a section, under the heading `group`."""

    title: str
    picture: Markup
    group: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with its interval."""

    text: str
    interval: str = ""
    attained: Attained | None = None
    """Of a rate: its share of what the machine can do, or why that is not known."""

    @property
    def is_long(self) -> bool:
        """Whether the cell is broken into several lines."""
        return len(self.text) > LONGEST_LINE


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table under the heading `group`; its first cell is its header."""

    group: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers beside a figure; `stacked`: intervals below their values, for tables with many of them in a row."""

    caption: str
    columns: list[str]
    rows: list[Row]
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A figure and its table."""

    id: str
    title: str
    how: str
    metrics: list[str]
    panels: list[Panel]
    key: list[LegendEntry]
    file: str
    csv: str
    runs: list[Run]
    tables: list[Table]
    hollow: bool
    floors: tuple[str, ...] = ()
    """A text on the noise floor of each metric, added by `machine.with_floors`."""

    @property
    def download(self) -> str:
        """The CSV as a link."""
        return csvs.data_uri(self.csv)


def section(
    id: str,
    title: str,
    how: str,
    metrics: list[str],
    panels: list[Panel],
    key: list[LegendEntry],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    runs: list[Run],
    tables: list[Table] | None = None,
) -> Section:
    """A section whose CSV has these columns and rows."""
    return Section(
        id,
        title,
        how,
        metrics,
        panels,
        _with_soft_roce(key, runs),
        f"{id}.csv",
        csvs.text(columns, rows),
        runs,
        tables or [],
        any(run.hollow for run in runs),
    )


def _with_soft_roce(key: Sequence[LegendEntry], runs: Iterable[Run]) -> list[LegendEntry]:
    """The legend, where series over verbs on a device made of software say so."""
    soft = {run.record.case.arm for run in runs if run.record and SOFT_ROCE in run.record.evidence_details}
    return [entry._replace(name=f"{entry.name} ({SOFT_ROCE})") if entry.name in soft else entry for entry in key]


def median_cell(stats: Summary | None, attained: Attained | None = None) -> Cell:
    """A median over launches with its interval; a dash without any launch."""
    if stats is None:
        return Cell("–")
    return Cell(significant(stats.median), bracket(stats.low, stats.high), attained)


def legend(looks: dict[str, Look], used: Iterable[str]) -> list[LegendEntry]:
    """Marks and names of the series in `used`."""
    return [LegendEntry(key_mark(looks[name]), name) for name in sorted(set(used))]


def swatches(names: Sequence[str]) -> list[LegendEntry]:
    """Filled squares of the parts of a step, hatched like the bars."""
    lines = "background:repeating-linear-gradient(135deg,var(--p{0}) 0 3px,var(--page) 3px 4px)"
    dots = "background:radial-gradient(var(--page) 1px,var(--p{0}) 1.5px) 0 0/5px 5px"
    hatched = {name: lines if hatch == "///" else dots for name, hatch in HATCHES.items()}
    style = [hatched.get(name, "background:var(--p{0})") for name in names]
    return [
        LegendEntry(
            Markup('<span class="swatch" style="{}"></span>').format(style[index].format(COLOURS.index(name))), name
        )
        for index, name in enumerate(names)
    ]


def dot(run: Run, x: float, y: float, metric: str) -> Dot:
    """The dot of a launch in a panel, for a metric of `run.metrics`."""
    assert run.record is not None
    mark = f", {run.record.evidence_text}" if run.record.evidence != "measured" else ""
    mark += "".join(f", {each}" for each in run.record.marks)
    return Dot(
        x,
        y,
        run.hollow,
        f"{run.record.case.arm}, launch {run.launch}: {significant(y)} {run.metrics[metric].unit}"
        f"{beside(run.attained(metric, y))}{mark}",
        f"runs/{run.launch}.html",
    )
