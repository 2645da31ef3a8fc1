"""The parts of a step's time, the parts of the loss against ideal scaling, the control arms, the first step, and a
comparison of the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scaleproof.claims import metrics_split
from scaleproof.report.control_arms import controls
from scaleproof.report.data import Run
from scaleproof.report.figures.split import PARTS, split
from scaleproof.report.groups import Groups, arm, by_arm_and_ranks, grouped, heading, summary, training
from scaleproof.report.numbers import percent, significant
from scaleproof.report.ranks_compared import ranks_compared
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, median_cell, section, swatches

METRICS = tuple(f"{part}_s" for part in metrics_split.PARTS)
FLAG = "⚑"
HOW = (
    "Each bar is a mean step of a mean rank; every moment of a step belongs to one part, by interval union, so that "
    "parts add up to it. Exposed communication "
    "is exposed transfer and imbalance together: what overlapping hides is in neither. Imbalance is the time in "
    "which a rank could not go on because another "
    f"had not come yet. Other is what no event explains; {FLAG} marks it where it is more than "
    f"{percent(metrics_split.UNEXPLAINED)} of the step."
)
METRICS_SHOWN = [
    *METRICS,
    "exposed_communication_s",
    "unexplained_share",
    "step_s",
    "first_step_s",
    "first_exchange_s",
    "rank_spread",
]
PARTS_CAPTION = (
    "Time per step in ms: mean over launches of each part ↓, and the median over launches of their sum with its "
    "interval."
)


def step_section(groups: Groups) -> Section:
    """The figure of a step's parts, its table, and the tables derived from the parts."""
    panels, csv_rows, table_rows = [], [], []
    for key, runs in groups.items():
        bars: dict[str, tuple[float, ...]] = {}
        by_bar = by_arm_and_ranks(runs)
        has_several_ranks = len({ranks for _, ranks in by_bar}) > 1
        for (name, ranks), group in by_bar.items():
            csv_rows += [(*key, name, ranks, run.launch, *(run.metric(metric) for metric in METRICS)) for run in group]
            parts = _milliseconds(group)
            if len(parts):
                bar = f"{name}, {ranks} rank{'s' if ranks > 1 else ''}" if has_several_ranks else name
                bars[bar] = tuple(parts.mean(axis=0))
                table_rows.append(Row(heading(key, groups), _part_cells(name, ranks, parts)))
        if bars:
            panels.append(Panel(heading(key, groups), split(f"Parts of a step, {heading(key, groups)}", bars)))
    columns = ["arm", "ranks", *(f"{part} (ms)" for part in PARTS), "sum (ms) ↓", "launches"]
    return section(
        "step",
        "Where the time of a step goes",
        HOW,
        METRICS_SHOWN,
        panels,
        swatches(PARTS),
        ("experiment", "network", "arm", "ranks", "launch", *METRICS),
        csv_rows,
        [run for runs in groups.values() for run in runs],
        [
            Table(PARTS_CAPTION, columns, table_rows),
            losses(groups),
            controls(groups),
            first_use(groups),
            ranks_compared(groups),
        ],
    )


def _part_cells(name: str, ranks: int, parts: np.ndarray) -> list[Cell]:
    """`parts`: ms, a row per launch and a column per part."""
    total = summary(parts.sum(axis=1))
    return [
        Cell(name),
        Cell(str(ranks)),
        *(Cell(text) for text in _flagged(tuple(parts.mean(axis=0)))),
        median_cell(total),
        Cell(str(total.n)),
    ]


def _milliseconds(runs: Sequence[Run]) -> np.ndarray:
    """A row per launch that has all parts, a column per part."""
    parts = [[run.metric(metric) for metric in METRICS] for run in runs]
    return np.array([[value * 1e3 for value in values if value is not None] for values in parts if None not in values])


def _flagged(parts: Sequence[float]) -> Iterator[str]:
    for name, part in zip(PARTS, parts, strict=True):
        is_large = name == "other" and part > metrics_split.UNEXPLAINED * sum(parts)
        yield f"{significant(part)} {FLAG}" if is_large else significant(part)


def base_runs(runs: Sequence[Run]) -> list[Run]:
    """The launches that scaling is relative to: of the fastest arm at the fewest ranks, with as many threads per rank
    as the largest launches have."""
    timed = [run for run in runs if run.metric("throughput") is not None]
    if not timed:
        return []
    threads = training(max(timed, key=lambda run: training(run).ranks)).threads_per_rank
    equal = [run for run in timed if training(run).threads_per_rank == threads]
    fewest = min(training(run).ranks for run in equal)
    arms = grouped([run for run in equal if training(run).ranks == fewest], arm)
    return max(arms.values(), key=lambda group: float(np.median([run.metric("throughput") for run in group])))


def losses(groups: Groups) -> Table:
    """The loss against ideal scaling by part, in points of efficiency. It is exact, since the parts are means that add
    up."""
    rows = []
    for key, runs in groups.items():
        base = base_runs(runs)
        parts = _milliseconds(base)
        if not len(parts):
            continue
        start, ideal = training(base[0]).ranks, parts.mean(axis=0)
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            launches = _milliseconds([run for run in group if training(run).compute == "real"])
            if ranks <= start or not len(launches):
                continue
            lost = lost_points(ideal, launches.mean(axis=0), ranks / start)
            cells = [
                Cell(name),
                Cell(str(ranks)),
                Cell(percent(1 - sum(lost))),
                *(Cell(percent(points)) for points in lost),
            ]
            rows.append(
                Row(f"{heading(key, groups)}, from {arm(base[0])} at {start} rank{'s' if start > 1 else ''}", cells)
            )
    caption = (
        "Parallel efficiency by mean steps, and the points lost to each part: its time above what ideal scaling "
        "would leave of the base's, over the step. The "
        "global minibatch is the same at every number of ranks (strong scaling), so an update that every rank makes "
        "in full is a loss too."
    )
    return Table(caption, ["arm", "ranks", "efficiency ↑", *(f"lost: {part} ↓" for part in PARTS)], rows)


def lost_points(base: np.ndarray, parts: np.ndarray, times: float) -> list[float]:
    """Loss of efficiency by part at `times` as many ranks and the same global minibatch. 1 minus their sum is base step
    / (times x step)."""
    return [float(loss) for loss in (parts - base / times) / parts.sum()]


def first_use(groups: Groups) -> Table:
    """How much longer the first step takes than a steady one; no other number includes it."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            first, exchange = (
                [value * 1e3 for run in group if (value := run.metric(metric)) is not None]
                for metric in ("first_step_s", "first_exchange_s")
            )
            steady = [value * 1e3 for run in group if (value := run.metric("step_s")) is not None]
            if first and steady:
                cells = [median_cell(summary(values) if values else None) for values in (first, exchange, steady)]
                rows.append(Row(heading(key, groups), [Cell(name), Cell(str(ranks)), *cells, Cell(str(len(first)))]))
    caption = (
        "First use, in no other number: what the first step takes above a steady one, and the first all-reduces of "
        "all buckets above later ones."
    )
    return Table(
        caption,
        [
            "arm",
            "ranks",
            "first step, more (ms) ↓",
            "first exchanges, more (ms) ↓",
            "steady step (ms) ↓",
            "launches",
        ],
        rows,
    )
