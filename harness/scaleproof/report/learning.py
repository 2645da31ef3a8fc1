"""The figures of what trainings learned: loss and accuracy over samples, over steps and over time, with every seed."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaleproof.claims.learning_curve import Axis, divergence, learning_curve
from scaleproof.report.data import Run
from scaleproof.report.figures.curves import VIRTUAL_SECONDS, Curve, curves
from scaleproof.report.figures.style import Look, series_looks
from scaleproof.report.groups import (
    Groups,
    arm,
    by_arm,
    by_network_and_level,
    grouped,
    heading,
    summary,
    training,
)
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, legend, median_cell, section
from scaleproof.report.targets import targets_table

HOW = (
    "A thin line per launch, each with a seed of its own; the thick one is the median over launches. Samples are those "
    "of all ranks that are in the model; of ranks at their own pace a step is one of the evaluated model's, and its "
    "training loss the mean over ranks. Time starts with the first step. A line ends where its training diverges."
)
AXES: dict[Axis, str] = {"samples": "over samples", "steps": "over steps", "seconds": "over time"}
CSV_COLUMNS = ("arm", "launch", "step", "samples", "seconds")
"""What else a launch is stands in runs.csv: curves have a row per step."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A quantity that is recorded while a network learns."""

    event: str
    """Name of its events in the samples."""
    title: str
    name: str
    """With its unit."""
    is_better_lower: bool
    metric: str
    """Its value at the end."""

    @property
    def axis(self) -> str:
        """Label of the y axis."""
        return f"{self.name}, {'lower' if self.is_better_lower else 'higher'} is better"

    @property
    def header(self) -> str:
        """Head of the table's column."""
        return f"{self.name} {'↓' if self.is_better_lower else '↑'}"


LEARNED = (
    Learned("loss", "Loss", "loss (nat)", True, "final_loss"),
    Learned("test_loss", "Test loss", "test loss (nat)", True, "test_loss"),
    Learned("test_accuracy", "Test accuracy", "test accuracy", False, "test_accuracy"),
)


@dataclass(slots=True)
class _Parts:
    """What the panels of a section add up to."""

    panels: list[Panel] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    csv_rows: list[tuple[object, ...]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def learning_sections(runs: list[Run], looks: dict[str, Look]) -> list[Section]:
    """A section for each quantity that these launches recorded. Levels of evidence have panels of their own."""
    groups = by_network_and_level(runs)
    return [part for quantity in LEARNED if (part := _section(groups, looks, quantity)) is not None]


def _section(groups: Groups, looks: dict[str, Look], quantity: Learned) -> Section | None:
    """None where no launch recorded the quantity."""
    parts = _Parts()
    looks = _looks_apart(groups, looks)
    for key, runs in groups.items():
        for ranks, group in sorted(grouped(runs, lambda run: training(run).ranks).items()):
            series = {
                name: launch_curves
                for name, launches in by_arm(group).items()
                if (launch_curves := _curves(launches, quantity.event))
            }
            if series:
                parts.panels += _panels(heading(key, groups), group, series, looks, quantity)
                parts.rows += _final_rows(heading(key, groups), ranks, group, quantity.metric)
                parts.csv_rows += _csv_rows(series)
                parts.runs += group
    if not parts.runs:
        return None
    caption = f"{quantity.title} at the end: median over launches and its interval."
    columns = ["arm", "ranks", quantity.header, "launches", "diverged"]
    tables = [Table(caption, columns, parts.rows)]
    if quantity.event == "test_accuracy":
        tables.append(targets_table(groups))
    return section(
        quantity.event.replace("_", "-"),
        quantity.title,
        HOW,
        [quantity.metric],
        parts.panels,
        legend(looks, map(arm, parts.runs)),
        (*CSV_COLUMNS, quantity.event),
        parts.csv_rows,
        parts.runs,
        tables,
    )


def _looks_apart(groups: Groups, looks: dict[str, Look]) -> dict[str, Look]:
    """Strategies that share a transport are told apart by colours too, as nothing else differs."""
    runs = sorted((run for launches in groups.values() for run in launches), key=arm)
    transports = {arm(run): training(run).transport for run in runs}
    replicas = any(training(run).replicas is not None for run in runs)
    return series_looks(transports) if replicas and len(set(transports.values())) < len(transports) else looks


def _panels(
    title: str, runs: list[Run], series: dict[str, list[Curve]], looks: dict[str, Look], quantity: Learned
) -> list[Panel]:
    """The curves over each axis; none where every curve is a single point. Launches with more ranks than cores have no
    times."""
    if max(len(curve.steps) for launches in series.values() for curve in launches) < 2:
        return []
    records, ranks = [run.record for run in runs if run.record], training(runs[0]).ranks
    name = f"{ranks} rank{'s' if ranks > 1 else ''}"
    crowded = any(record.evidence == "measured" and record.oversubscribed for record in records)
    virtual = any(record.evidence == "simulated" for record in records)
    panels = []
    for axis, over in AXES.items():
        if axis == "seconds" and crowded:
            continue
        label = f"{quantity.title} {over}, {title}, {name}"
        x_label = VIRTUAL_SECONDS if axis == "seconds" and virtual else ""
        picture = curves(label, series, looks, quantity.axis, axis, x_label)
        panels.append(Panel(f"{name}, {over}", picture, title))
    return panels


def _csv_rows(series: dict[str, list[Curve]]) -> list[tuple[object, ...]]:
    return [
        (name, curve.launch, *point)
        for name, launches in series.items()
        for curve in launches
        for point in zip(
            curve.steps.tolist(),
            curve.samples.tolist(),
            curve.seconds.tolist(),
            curve.values.tolist(),
            strict=True,
        )
    ]


def _final_rows(title: str, ranks: int, runs: list[Run], metric: str) -> list[Row]:
    rows = []
    for name, launches in by_arm(runs).items():
        values = [value for run in launches if (value := run.metric(metric)) is not None]
        steps = [int(step) for run in launches if (step := run.metric("diverged_step")) is not None]
        if values or steps:
            median = median_cell(summary(values) if values else None)
            cells = [Cell(name), Cell(str(ranks)), median, Cell(str(len(launches))), Cell(diverged_text(steps))]
            rows.append(Row(title, cells))
    return rows


def diverged_text(steps: list[int]) -> str:
    """How many launches diverged, and from which step on."""
    if not steps:
        return "none"
    first, last = min(steps), max(steps)
    return f"{len(steps)}, at step {first}" + (f" to {last}" if last > first else "")


def _curves(runs: list[Run], event: str) -> list[Curve]:
    return [curve for run in runs if (curve := curve_of(run, event)) is not None]


def curve_of(run: Run, event: str) -> Curve | None:
    """How a launch learned; None where it did not record the quantity."""
    assert run.record is not None, "a launch without a record learned nothing"
    found = learning_curve(run.record, run.samples, event)
    if found is None:
        return None
    ends = divergence(run.record, run.samples) or ""
    return Curve(run.launch, found.steps, found.samples, found.seconds, found.values, run.hollow, ends)
