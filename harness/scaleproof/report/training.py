"""The figures of `train`: throughput against ranks, and loss and accuracy over steps and over time. The parts of a
step's time are in decomposition.py."""

from __future__ import annotations

from dataclasses import dataclass

from scaleproof.report.data import Run
from scaleproof.report.decomposition import base_runs, step_section
from scaleproof.report.figures.curves import Curve, curves
from scaleproof.report.figures.scaling import Point, scaling
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import Groups, PanelKey, arm, by_arm, by_network, grouped, heading, summary, training
from scaleproof.report.numbers import bracket, significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, dot, legend, median_cell, section

THROUGHPUT_HOW = (
    "Samples of all ranks over the common wall time of a launch. Large marks are medians over launches with "
    "their 95 % interval where there are at least "
    "6 launches; small dots are single launches and lead to them. The dashed line is ideal strong scaling, the "
    "same global minibatch on more ranks: ranks "
    "times the fastest arm at the fewest ranks, with as many threads per rank; the table names this base."
)
THROUGHPUT_CAPTION = (
    "Throughput: median over launches and its interval, beside ideal scaling from the base and one process with "
    "as many threads as there are cores. Attainable is what this machine's cores were measured to compute."
)
THROUGHPUT_COLUMNS = [
    "arm",
    "ranks",
    "throughput (samples/s) ↑",
    "launches",
    "ideal (samples/s)",
    "share of ideal ↑",
    "against one process with as many cores ↑",
]
THROUGHPUT_CSV_COLUMNS = (
    "experiment",
    "network",
    "arm",
    "ranks",
    "threads_per_rank",
    "launch",
    "throughput_samples_per_s",
)
LEARNING_HOW = (
    "A thin line per launch; the thick one is the median over launches at each step, placed at the median time, "
    "which starts with the first step."
)


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
    Learned("test_accuracy", "Test accuracy", "test accuracy", False, "test_accuracy"),
)


def sections(runs: list[Run], looks: dict[str, Look]) -> list[Section]:
    """The sections for which there are launches: times of those whose data cannot be learned, loss and accuracy of the
    others. Simulated launches are shown by levels.py."""
    runs = [run for run in runs if not training(run).plugin("fabric").predicted]
    timed = by_network(run for run in runs if not training(run).learnable)
    learned = by_network(run for run in runs if training(run).learnable)
    parts: list[Section] = [_throughput(timed, looks), step_section(timed)] if timed else []
    return parts + [part for quantity in LEARNED if (part := _learning(learned, looks, quantity)) is not None]


@dataclass(slots=True)
class _Panels:
    """What the panels of a section add up to."""

    panels: list[Panel]
    table: list[Row]
    csv_rows: list[tuple[object, ...]]
    runs: list[Run]

    @classmethod
    def empty(cls) -> _Panels:
        return cls([], [], [], [])


def _throughput(groups: Groups, looks: dict[str, Look]) -> Section:
    parts = _Panels.empty()
    for key, group in groups.items():
        runs = [run for run in group if training(run).compute == "real"]
        base = base_runs(runs)
        if base:
            _add_throughput(parts, heading(key, groups), runs, base, looks)
            parts.csv_rows += [(*key, *_throughput_values(run)) for run in runs]
    return section(
        "throughput",
        "Throughput against ranks",
        THROUGHPUT_HOW,
        ["throughput", "speedup", "parallel_efficiency"],
        parts.panels,
        legend(looks, map(arm, parts.runs)),
        THROUGHPUT_CSV_COLUMNS,
        parts.csv_rows,
        parts.runs,
        [Table(THROUGHPUT_CAPTION, THROUGHPUT_COLUMNS, parts.table)],
    )


def _throughput_values(run: Run) -> tuple[object, ...]:
    case = training(run)
    return arm(run), case.ranks, case.threads_per_rank, run.launch, run.metric("throughput")


def _add_throughput(parts: _Panels, title: str, runs: list[Run], base: list[Run], looks: dict[str, Look]) -> None:
    """Add the panel of one network and its rows of the table. `base`: the launches that scaling is counted from."""
    series = {name: points for name, launches in by_arm(runs).items() if (points := _points(launches))}
    per_rank = summary(value for run in base if (value := run.metric("throughput")) is not None).median
    per_rank /= training(base[0]).ranks
    # With one number of ranks there is nothing to scale from.
    ideal = per_rank if len({point.ranks for points in series.values() for point in points}) > 1 else None
    parts.panels.append(Panel(title, scaling(f"Throughput against ranks, {title}", series, looks, ideal)))
    one_process = _one_process(runs)
    for name, points in series.items():
        for point in points:
            against = one_process.get(point.ranks) if point.ranks > 1 else None
            parts.table.append(Row(_title_with_base(title, base), _throughput_cells(name, point, ideal, against)))
    parts.runs += runs


def _throughput_cells(name: str, point: Point, ideal: float | None, one_process: float | None) -> list[Cell]:
    """`ideal`: samples/s per rank; `one_process`: samples/s of one rank with as many threads as there are ranks."""
    bounds = [ideal * point.ranks, point.median / ideal / point.ranks] if ideal else [None, None]
    against = None if one_process is None else point.median / one_process
    return [
        Cell(name),
        Cell(str(point.ranks)),
        Cell(significant(point.median), bracket(point.low, point.high), point.attained),
        Cell(str(len(point.dots))),
        *(Cell(significant(value)) for value in (*bounds, against)),
    ]


def _title_with_base(title: str, base: list[Run]) -> str:
    """A panel's title with the base that its numbers are relative to."""
    case = training(base[0])
    ranks, threads = (
        f"{count} {noun}{'s' if count > 1 else ''}"
        for count, noun in ((case.ranks, "rank"), (case.threads_per_rank, "thread"))
    )
    return f"{title}; base: {arm(base[0])}, {ranks} x {threads}"


def _one_process(runs: list[Run]) -> dict[int, float]:
    """Median throughput of one rank, by its number of threads."""
    alone = grouped([run for run in runs if training(run).ranks == 1], lambda run: training(run).threads_per_rank)
    values = {
        threads: [value for run in group if (value := run.metric("throughput")) is not None]
        for threads, group in alone.items()
    }
    return {threads: summary(group).median for threads, group in values.items() if group}


def _points(runs: list[Run]) -> list[Point]:
    points = []
    for ranks, group in sorted(grouped(runs, lambda run: training(run).ranks).items()):
        values = [(run, value) for run in group if (value := run.metric("throughput")) is not None]
        if not values:
            continue
        median = summary(value for _, value in values)
        dots = [dot(run, ranks, value, "throughput") for run, value in values]
        hollow, attained = any(run.hollow for run in group), values[0][0].attained("throughput", median.median)
        points.append(Point(ranks, median.median, median.low, median.high, hollow, dots, attained))
    return points


def _learning(groups: Groups, looks: dict[str, Look], quantity: Learned) -> Section | None:
    """None where no launch recorded the quantity."""
    parts = _Panels.empty()
    for key, runs in groups.items():
        for ranks, group in sorted(grouped(runs, lambda run: training(run).ranks).items()):
            series = {
                name: launch_curves
                for name, launches in by_arm(group).items()
                if (launch_curves := _curves(launches, quantity.event))
            }
            if series:
                parts.panels += _learning_panels(heading(key, groups), ranks, series, looks, quantity)
                parts.table += _final_rows(heading(key, groups), ranks, group, quantity.metric)
                parts.csv_rows += _learning_rows(key, ranks, series)
                parts.runs += group
    if not parts.runs:
        return None
    caption = f"{quantity.title} at the end: median over launches and its interval."
    return section(
        quantity.event.replace("_", "-"),
        quantity.title,
        LEARNING_HOW,
        [quantity.metric],
        parts.panels,
        legend(looks, map(arm, parts.runs)),
        ("experiment", "network", "arm", "ranks", "launch", "step", "seconds", quantity.event),
        parts.csv_rows,
        parts.runs,
        [Table(caption, ["arm", "ranks", quantity.header, "launches"], parts.table)],
    )


def _learning_panels(
    title: str, ranks: int, series: dict[str, list[Curve]], looks: dict[str, Look], quantity: Learned
) -> list[Panel]:
    """The curves over steps and over time; none where every curve is a single point."""
    if max(len(curve.steps) for launches in series.values() for curve in launches) < 2:
        return []
    name = f"{ranks} rank{'s' if ranks > 1 else ''}"
    panels = []
    for over_time, axis in ((False, "over steps"), (True, "over time")):
        label = f"{quantity.title} {axis}, {title}, {name}"
        panels.append(Panel(f"{name}, {axis}", curves(label, series, looks, quantity.axis, over_time), title))
    return panels


def _learning_rows(key: PanelKey, ranks: int, series: dict[str, list[Curve]]) -> list[tuple[object, ...]]:
    return [
        (*key, name, ranks, curve.launch, *point)
        for name, launches in series.items()
        for curve in launches
        for point in zip(curve.steps.tolist(), curve.seconds.tolist(), curve.values.tolist(), strict=True)
    ]


def _final_rows(title: str, ranks: int, runs: list[Run], metric: str) -> list[Row]:
    rows = []
    for name, launches in by_arm(runs).items():
        if values := [value for run in launches if (value := run.metric(metric)) is not None]:
            median = summary(values)
            rows.append(Row(title, [Cell(name), Cell(str(ranks)), median_cell(median), Cell(str(median.n))]))
    return rows


def _curves(runs: list[Run], event: str) -> list[Curve]:
    return [curve for run in runs if (curve := _curve(run, event)) is not None]


def _curve(run: Run, event: str) -> Curve | None:
    rows = run.samples[run.samples["rank"] == 0]
    values = rows[rows["event"] == event].sort_values("step")
    steps = rows.loc[rows["event"] == "step", "start_ns"]
    if values.empty or steps.empty:
        return None
    seconds = (values["start_ns"].to_numpy() - steps.min()) / 1e9
    return Curve(run.launch, values["step"].to_numpy(), seconds, values["value"].to_numpy(), run.hollow)
