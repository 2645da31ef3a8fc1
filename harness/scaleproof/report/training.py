"""The figures of `train`: throughput against ranks, loss and accuracy over steps and over time; decomposition.py has
where a step's time goes."""

from __future__ import annotations

from scaleproof.report.data import Run
from scaleproof.report.decomposition import base_runs, step_section
from scaleproof.report.figures.curves import Curve, curves
from scaleproof.report.figures.scaling import Point, scaling
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import Groups, Summary, arm, by_arm, by_network, grouped, heading, summary, training
from scaleproof.report.numbers import bracket, significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, dot, legend, section

RANDOM = "synthetic"
"""Data that cannot be learned: elsewhere a loss curve means something, and throughput is not the question."""


def sections(runs: list[Run], looks: dict[str, Look]) -> list[Section]:
    """Those that the launches give something to show for; what is simulated stands in levels.py."""
    runs = [run for run in runs if not training(run).plugin("fabric").predicted]
    timed = by_network(run for run in runs if training(run).value("workload.data", RANDOM) == RANDOM)
    learned = by_network(run for run in runs if training(run).value("workload.data", RANDOM) != RANDOM)
    parts: list[Section] = []
    parts += [_throughput(timed, looks), step_section(timed)] if timed else []
    parts += _learning(learned, looks, "loss", "Loss", "loss (nat), lower is better", "final_loss") if learned else []
    parts += (
        _learning(learned, looks, "test_accuracy", "Test accuracy", "test accuracy, higher is better", "test_accuracy")
        if learned
        else []
    )
    return parts


def _throughput(groups: Groups, looks: dict[str, Look]) -> Section:
    panels, rows, table, every = [], [], [], []
    for key, group in groups.items():
        runs = [run for run in group if training(run).compute == "real"]
        base = base_runs(runs)
        if not base:
            continue
        every += runs
        title = heading(key, groups)
        series = {name: drawn for name, launches in by_arm(runs).items() if (drawn := _points(launches))}
        points = [(name, point) for name, drawn in series.items() for point in drawn]
        start = training(base[0]).ranks
        per_rank = summary(value for run in base if (value := run.metric("throughput")) is not None).median / start
        # With one number of ranks there is nothing to scale from.
        ideal = per_rank if len({point.ranks for _, point in points}) > 1 else None
        panels.append(Panel(title, scaling(f"Throughput against ranks, {title}", series, looks, ideal)))
        whole = _one_process(runs)
        for name, point in points:
            cells = [
                Cell(name),
                Cell(str(point.ranks)),
                Cell(significant(point.median), bracket(point.low, point.high)),
                Cell(str(len(point.dots))),
            ]
            bound = [ideal * point.ranks, point.median / ideal / point.ranks] if ideal else [None, None]
            against = point.median / whole[point.ranks] if point.ranks in whole and point.ranks > 1 else None
            table.append(Row(_from(title, base), [*cells, *(Cell(significant(value)) for value in (*bound, against))]))
        rows += [
            (*key, arm(run), training(run).ranks, training(run).threads_per_rank, run.launch, run.metric("throughput"))
            for run in runs
        ]
    how = (
        "Samples of all ranks over the common wall time of a launch. Large marks are medians over launches with "
        "their 95 % interval where there are at least "
        "6 launches; small dots are single launches and lead to them. The dashed line is ideal strong scaling, the "
        "same global minibatch on more ranks: ranks "
        "times the fastest arm at the fewest ranks, with as many threads per rank; the table names this base."
    )
    columns = [
        "arm",
        "ranks",
        "throughput (samples/s) ↑",
        "launches",
        "ideal (samples/s)",
        "share of ideal ↑",
        "against one process with as many cores ↑",
    ]
    caption = (
        "Throughput: median over launches and its interval, beside ideal scaling from the base and one process with "
        "as many threads as there are cores."
    )
    return section(
        "throughput",
        "Throughput against ranks",
        how,
        ["throughput", "speedup", "parallel_efficiency"],
        panels,
        legend(looks, map(arm, every)),
        ("experiment", "network", "arm", "ranks", "threads_per_rank", "launch", "throughput_samples_per_s"),
        rows,
        every,
        [Table(caption, columns, table)],
    )


def _from(title: str, base: list[Run]) -> str:
    """A panel's title with the base that its numbers are counted from."""
    case = training(base[0])
    ranks, threads = (
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((case.ranks, "rank"), (case.threads_per_rank, "thread"))
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
        dots = [dot(run, ranks, value, "samples/s") for run, value in values]
        points.append(Point(ranks, median.median, median.low, median.high, any(run.hollow for run in group), dots))
    return points


def _cell(stats: Summary) -> Cell:
    return Cell(significant(stats.median), bracket(stats.low, stats.high))


def _learning(
    groups: Groups, looks: dict[str, Look], event: str, title: str, quantity: str, metric: str
) -> list[Section]:
    panels, rows, kept, table = [], [], [], []
    for key, runs in groups.items():
        for ranks, group in sorted(grouped(runs, lambda run: training(run).ranks).items()):
            series = {name: drawn for name, launches in by_arm(group).items() if (drawn := _curves(launches, event))}
            if not series:
                continue
            name = f"{ranks} rank{'s' if ranks > 1 else ''}"
            longest = max(len(curve.steps) for drawn in series.values() for curve in drawn)
            if longest > 1:
                for over_time, axis in ((False, "over steps"), (True, "over time")):
                    picture = curves(
                        f"{title} {axis}, {heading(key, groups)}, {name}", series, looks, quantity, over_time
                    )
                    panels.append(Panel(f"{name}, {axis}", picture, heading(key, groups)))
            kept += group
            table += _last(heading(key, groups), ranks, group, metric)
            for label, drawn in series.items():
                rows += [
                    (*key, label, ranks, curve.launch, *point)
                    for curve in drawn
                    for point in zip(curve.steps.tolist(), curve.seconds.tolist(), curve.values.tolist(), strict=True)
                ]
    how = (
        "A thin line per launch; the thick one is the median over launches at each step, placed at the median time, "
        "which starts with the first step."
    )
    caption = f"{title} at the end: median over launches and its interval."
    columns = ["arm", "ranks", f"{quantity.partition(',')[0]} {'↓' if event == 'loss' else '↑'}", "launches"]
    names = ("experiment", "network", "arm", "ranks", "launch", "step", "seconds", event)
    found_section = section(
        event.replace("_", "-"),
        title,
        how,
        [metric],
        panels,
        legend(looks, map(arm, kept)),
        names,
        rows,
        kept,
        [Table(caption, columns, table)],
    )
    return [found_section] if kept else []


def _last(title: str, ranks: int, runs: list[Run], metric: str) -> list[Row]:
    rows = []
    for name, launches in by_arm(runs).items():
        if values := [value for run in launches if (value := run.metric(metric)) is not None]:
            median = summary(values)
            rows.append(Row(title, [Cell(name), Cell(str(ranks)), _cell(median), Cell(str(median.n))]))
    return rows


def _curves(runs: list[Run], event: str) -> list[Curve]:
    return [curve for run in runs if (curve := _curve(run, event)) is not None]


def _curve(run: Run, event: str) -> Curve | None:
    rows = run.samples[run.samples["rank"] == 0]
    values = rows[rows["event"] == event].sort_values("step")
    begun = rows.loc[rows["event"] == "step", "start_ns"]
    if values.empty or begun.empty:
        return None
    seconds = (values["start_ns"].to_numpy() - begun.min()) / 1e9
    return Curve(run.launch, values["step"].to_numpy(), seconds, values["value"].to_numpy(), run.hollow)
