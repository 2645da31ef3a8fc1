"""The figures of `train`: throughput against ranks, where a step's time goes, loss and accuracy over steps and over time."""

from __future__ import annotations

import numpy as np

from harness.report.data import Run
from harness.report.figures.curves import Curve, curves
from harness.report.figures.scaling import Point, scaling
from harness.report.figures.split import PARTS, split
from harness.report.figures.style import Look
from harness.report.groups import Summary, arm, by_arm, by_network, grouped, summary, training
from harness.report.numbers import bracket, significant
from harness.report.sections import Cell, Panel, Row, Section, Table, dot, legend, section, swatches

LEARNS = "digits"
"""Data that can be learned: only there a loss curve means something, and there throughput is not the question."""
METRICS = ("input_s", "forward_s", "backward_s", "exposed_communication_s", "update_s", "other_s")
Groups = dict[tuple[str, str], list[Run]]


def sections(runs: list[Run], looks: dict[str, Look]) -> list[Section]:
    """Those that the launches give something to show for."""
    timed = by_network(run for run in runs if training(run).data != LEARNS)
    learned = by_network(run for run in runs if training(run).data == LEARNS)
    found: list[Section] = []
    found += [_throughput(timed, looks), _split(timed)] if timed else []
    found += _learning(learned, looks, "loss", "Loss", "loss (nat), lower is better", "final_loss") if learned else []
    found += _learning(learned, looks, "test_accuracy", "Test accuracy", "test accuracy, higher is better", "test_accuracy") if learned else []
    return found


def _title(key: tuple[str, str], groups: Groups) -> str:
    """Names the experiment too when two of them have the same network."""
    same = [other for other in groups if other[1] == key[1]]
    return key[1] if len(same) == 1 else f"{key[1]} ({key[0]})"


def _throughput(groups: Groups, looks: dict[str, Look]) -> Section:
    panels, rows, table = [], [], []
    for key, runs in groups.items():
        title = _title(key, groups)
        series = {name: _points(found) for name, found in by_arm(runs).items()}
        points = [(name, point) for name, found in series.items() for point in found]
        _, base = min(points, key=lambda item: (item[1].ranks, -item[1].median))
        # With one number of ranks there is nothing to scale from.
        ideal = base.median / base.ranks if len({point.ranks for _, point in points}) > 1 else None
        panels.append(Panel(title, scaling(f"Throughput against ranks, {title}", series, looks, ideal)))
        for name, point in points:
            cells = [Cell(name), Cell(str(point.ranks)), Cell(significant(point.median), bracket(point.low, point.high))]
            bound = [ideal * point.ranks, point.median / ideal / point.ranks] if ideal else [None, None]
            table.append(Row(title, [*cells, Cell(str(len(point.dots))), *(Cell(significant(value)) for value in bound)]))
        rows += [(*key, arm(run), training(run).ranks, run.launch, run.metric("throughput")) for run in runs]
    how = (
        "Samples of all ranks over the common wall time of a launch. Large marks are medians over launches with their 95 % interval where there are at least "
        "6 launches; small dots are single launches and lead to them. The dashed line is ideal scaling from the fastest arm at the fewest ranks of the panel."
    )
    columns = ["arm", "ranks", "throughput (samples/s) ↑", "launches", "ideal (samples/s)", "share of ideal ↑"]
    caption = "Throughput: median over launches and its interval, beside ideal scaling from the panel's base."
    every = [run for runs in groups.values() for run in runs]
    return section(
        "throughput", "Throughput against ranks", how, ["throughput"], panels, legend(looks, map(arm, every)),
        ("experiment", "network", "arm", "ranks", "launch", "throughput_samples_per_s"), rows, every, [Table(caption, columns, table)],
    )  # fmt: skip


def _points(runs: list[Run]) -> list[Point]:
    points = []
    for ranks, found in sorted(grouped(runs, lambda run: training(run).ranks).items()):
        values = [(run, value) for run in found if (value := run.metric("throughput")) is not None]
        if not values:
            continue
        median = summary(value for _, value in values)
        dots = [dot(run, ranks, value, "samples/s") for run, value in values]
        points.append(Point(ranks, median.median, median.low, median.high, any(run.hollow for run in found), dots))
    return points


def _split(groups: Groups) -> Section:
    panels, rows, table = [], [], []
    for key, runs in groups.items():
        bars: dict[str, tuple[float, ...]] = {}
        cells = grouped(runs, lambda run: (arm(run), training(run).ranks))
        several = len({ranks for _, ranks in cells}) > 1
        for (name, ranks), found in sorted(cells.items()):
            parts = [[run.metric(metric) for metric in METRICS] for run in found]
            kept = np.array([[value * 1e3 for value in values if value is not None] for values in parts if None not in values])
            if not len(kept):
                continue
            label = f"{name}, {ranks} rank{'s' if ranks > 1 else ''}" if several else name
            bars[label] = tuple(kept.mean(axis=0))
            total = summary(kept.sum(axis=1))
            shares = [Cell(significant(part)) for part in bars[label]]
            table.append(Row(_title(key, groups), [Cell(name), Cell(str(ranks)), *shares, _cell(total), Cell(str(total.n))]))
            rows += [(*key, name, ranks, run.launch, *values) for run, values in zip(found, parts, strict=True)]
        if bars:
            panels.append(Panel(_title(key, groups), split(f"Parts of a step, {_title(key, groups)}", bars)))
    how = (
        "Each bar is a mean step of a mean rank; parts are means over launches, so that they add up. Exposed communication is the union of communication "
        "outside forward, backward, input and update: what overlapping hides is not in it. Other is what no event explains."
    )
    caption = "Time per step in ms: mean over launches of each part ↓, and the median over launches of their sum with its interval."
    columns = ["arm", "ranks", *(f"{part} (ms)" for part in PARTS), "sum (ms) ↓", "launches"]
    every = [run for runs in groups.values() for run in runs]
    return section(
        "step", "Where the time of a step goes", how, list(METRICS), panels, swatches(PARTS),
        ("experiment", "network", "arm", "ranks", "launch", *METRICS), rows, every, [Table(caption, columns, table)],
    )  # fmt: skip


def _cell(found: Summary) -> Cell:
    return Cell(significant(found.median), bracket(found.low, found.high))


def _learning(groups: Groups, looks: dict[str, Look], event: str, title: str, quantity: str, metric: str) -> list[Section]:
    panels, rows, kept, table = [], [], [], []
    for key, runs in groups.items():
        for ranks, found in sorted(grouped(runs, lambda run: training(run).ranks).items()):
            series = {name: drawn for name, launches in by_arm(found).items() if (drawn := _curves(launches, event))}
            if not series:
                continue
            name = f"{ranks} rank{'s' if ranks > 1 else ''}"
            longest = max(len(curve.steps) for drawn in series.values() for curve in drawn)
            if longest > 1:
                for over_time, axis in ((False, "over steps"), (True, "over time")):
                    picture = curves(f"{title} {axis}, {_title(key, groups)}, {name}", series, looks, quantity, over_time)
                    panels.append(Panel(f"{name}, {axis}", picture, _title(key, groups)))
            kept += found
            table += _last(_title(key, groups), ranks, found, metric)
            for label, drawn in series.items():
                rows += [
                    (*key, label, ranks, curve.launch, *point)
                    for curve in drawn for point in zip(curve.steps.tolist(), curve.seconds.tolist(), curve.values.tolist(), strict=True)
                ]  # fmt: skip
    how = "A thin line per launch; the thick one is the median over launches at each step, placed at the median time, which starts with the first step."
    caption = f"{title} at the end: median over launches and its interval."
    columns = ["arm", "ranks", f"{quantity.partition(',')[0]} {'↓' if event == 'loss' else '↑'}", "launches"]
    names = ("experiment", "network", "arm", "ranks", "launch", "step", "seconds", event)
    found_section = section(
        event.replace("_", "-"), title, how, [metric], panels, legend(looks, map(arm, kept)), names, rows, kept, [Table(caption, columns, table)]
    )
    return [found_section] if kept else []


def _last(title: str, ranks: int, runs: list[Run], metric: str) -> list[Row]:
    found = []
    for name, launches in by_arm(runs).items():
        if values := [value for run in launches if (value := run.metric(metric)) is not None]:
            median = summary(values)
            found.append(Row(title, [Cell(name), Cell(str(ranks)), _cell(median), Cell(str(median.n))]))
    return found


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
