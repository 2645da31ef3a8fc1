"""The figures of `train`: throughput against ranks. The parts of a step's time are in decomposition.py and own_pace.py,
what trainings learned is in learning.py."""

from __future__ import annotations

from dataclasses import dataclass

from scaleproof.report.data import Run
from scaleproof.report.decomposition import base_runs, step_section
from scaleproof.report.figures.scaling import Point, scaling
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import Groups, arm, by_arm, by_network, grouped, heading, summary, training
from scaleproof.report.learning import learning_sections
from scaleproof.report.numbers import bracket, significant
from scaleproof.report.own_pace import own_pace_sections
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, dot, legend, section
from scaleproof.report.staleness import staleness_sections

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


def sections(runs: list[Run], looks: dict[str, Look]) -> list[Section]:
    """The sections for which there are launches: times of those whose data cannot be learned, loss and accuracy of the
    others, also in virtual time. Other simulated launches are shown by levels.py."""
    real = [run for run in runs if not training(run).plugin("fabric").predicted]
    timed = by_network(run for run in real if not training(run).learnable)
    lockstep = by_network(run for run in real if not training(run).learnable and training(run).replicas is None)
    parts: list[Section] = [_throughput(timed, looks)] if timed else []
    parts += [step_section(lockstep)] if lockstep else []
    paced = [run for run in runs if training(run).replicas is not None]
    parts += own_pace_sections(paced) + staleness_sections(paced)
    computed = [run for run in runs if run.record is not None and run.record.trajectory]
    return parts + learning_sections([run for run in (*real, *computed) if training(run).learnable], looks)


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
