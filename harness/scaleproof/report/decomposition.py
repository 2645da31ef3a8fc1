"""Where the time of a step goes: parts, what the loss against ideal scaling is made of, the control arms, first use,
and the ranks against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from scaleproof.claims import metrics_split, stragglers
from scaleproof.report.data import Run
from scaleproof.report.figures.split import PARTS, split
from scaleproof.report.groups import Groups, arm, grouped, heading, summary, training
from scaleproof.report.numbers import bracket, percent, significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, section, swatches

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


def step_section(groups: Groups) -> Section:
    """The figure, its table of parts, and the tables that read them."""
    panels, rows, parts = [], [], []
    for key, runs in groups.items():
        bars: dict[str, tuple[float, ...]] = {}
        cells = by_arm_and_ranks(runs)
        several = len({ranks for _, ranks in cells}) > 1
        for (name, ranks), group in cells.items():
            kept = _milliseconds(group)
            rows += [(*key, name, ranks, run.launch, *(run.metric(metric) for metric in METRICS)) for run in group]
            if not len(kept):
                continue
            label = f"{name}, {ranks} rank{'s' if ranks > 1 else ''}" if several else name
            bars[label] = tuple(kept.mean(axis=0))
            total = summary(kept.sum(axis=1))
            shown = [Cell(text) for text in _flagged(bars[label])]
            parts.append(
                Row(
                    heading(key, groups),
                    [
                        Cell(name),
                        Cell(str(ranks)),
                        *shown,
                        _cell(total.median, total.low, total.high),
                        Cell(str(total.n)),
                    ],
                )
            )
        if bars:
            panels.append(Panel(heading(key, groups), split(f"Parts of a step, {heading(key, groups)}", bars)))
    caption = (
        "Time per step in ms: mean over launches of each part ↓, and the median over launches of their sum with its "
        "interval."
    )
    columns = ["arm", "ranks", *(f"{part} (ms)" for part in PARTS), "sum (ms) ↓", "launches"]
    every = [run for runs in groups.values() for run in runs]
    used = [
        *METRICS,
        "exposed_communication_s",
        "unexplained_share",
        "step_s",
        "first_step_s",
        "first_exchange_s",
        "rank_spread",
    ]
    tables = [
        Table(caption, columns, parts),
        losses(groups),
        controls(groups),
        first_use(groups),
        ranks_compared(groups),
    ]
    return section(
        "step",
        "Where the time of a step goes",
        HOW,
        used,
        panels,
        swatches(PARTS),
        ("experiment", "network", "arm", "ranks", "launch", *METRICS),
        rows,
        every,
        tables,
    )


def by_arm_and_ranks(runs: Iterable[Run]) -> dict[tuple[str, int], list[Run]]:
    """Sorted by arm, then ranks."""
    return dict(sorted(grouped(runs, lambda run: (arm(run), training(run).ranks)).items()))


def _milliseconds(runs: Sequence[Run]) -> np.ndarray:
    """A row per launch that has all parts, a column per part."""
    parts = [[run.metric(metric) for metric in METRICS] for run in runs]
    return np.array([[value * 1e3 for value in values if value is not None] for values in parts if None not in values])


def _flagged(parts: Sequence[float]) -> Iterator[str]:
    for name, part in zip(PARTS, parts, strict=True):
        much = name == "other" and part > metrics_split.UNEXPLAINED * sum(parts)
        yield f"{significant(part)} {FLAG}" if much else significant(part)


def _cell(value: float, low: float | None = None, high: float | None = None) -> Cell:
    return Cell(significant(value), bracket(low, high))


def base_runs(runs: Sequence[Run]) -> list[Run]:
    """The launches that scaling is counted from: the fastest arm at the fewest ranks with as many threads a rank as the
    largest launches have."""
    timed = [run for run in runs if run.metric("throughput") is not None]
    if not timed:
        return []
    threads = training(max(timed, key=lambda run: training(run).ranks)).threads_per_rank
    equal = [run for run in timed if training(run).threads_per_rank == threads]
    fewest = min(training(run).ranks for run in equal)
    arms = grouped([run for run in equal if training(run).ranks == fewest], arm)
    return max(arms.values(), key=lambda group: float(np.median([run.metric("throughput") for run in group])))


def losses(groups: Groups) -> Table:
    """What keeps an arm from ideal scaling, in points of efficiency. Exact, since parts are means that add up."""
    rows = []
    for key, runs in groups.items():
        base = base_runs(runs)
        parts = _milliseconds(base)
        if not len(parts):
            continue
        start, ideal = training(base[0]).ranks, parts.mean(axis=0)
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            kept = _milliseconds([run for run in group if training(run).compute == "real"])
            if ranks <= start or not len(kept):
                continue
            lost = lost_points(ideal, kept.mean(axis=0), ranks / start)
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
    """Loss of efficiency by part for `times` as many ranks at the same global minibatch; 1 minus their sum is base step
    / (times x step)."""
    return [float(loss) for loss in (parts - base / times) / parts.sum()]


def controls(groups: Groups) -> Table:
    """A step beside the same step without communication and without compute."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            case = training(group[0])
            if case.transport is None or case.compute == "none":
                continue
            silent = [run for run in runs if training(run).transport is None and training(run).ranks == ranks]
            same = ("transport", "collective", "ranks", "threads_per_rank", "framework")
            idle = [
                run
                for run in runs
                if training(run).compute == "none"
                and all(training(run).value(field) == case.value(field) for field in same)
            ]
            steps = [
                [value * 1e3 for run in side if (value := run.metric("step_s")) is not None]
                for side in (group, silent, idle)
            ]
            if not all(steps):
                continue
            step, compute, exchange = (summary(values) for values in steps)
            longest, together = max(compute.median, exchange.median), compute.median + exchange.median
            hidden = (together - step.median) / min(compute.median, exchange.median)
            cells = [_cell(stats.median, stats.low, stats.high) for stats in (step, compute, exchange)]
            between = Cell("yes" if longest <= step.median <= together else "no")
            rows.append(
                Row(
                    heading(key, groups),
                    [
                        Cell(name),
                        Cell(str(ranks)),
                        *cells,
                        _cell(longest),
                        _cell(together),
                        between,
                        Cell(percent(hidden)),
                    ],
                )
            )
    caption = (
        "Control arms: the step, the step with communication off, the step with compute off (median over launches, "
        "interval). Perfect overlap costs the longer "
        "of the two, none costs their sum; hidden is the share of the shorter one that is saved. Below 0: the two "
        "disturb each other."
    )
    return Table(
        caption,
        [
            "arm",
            "ranks",
            "step (ms)",
            "communication off (ms)",
            "compute off (ms)",
            "longer (ms)",
            "sum (ms)",
            "between",
            "hidden ↑",
        ],
        rows,
    )


def first_use(groups: Groups) -> Table:
    """What the first step costs above a steady one; it is in no other number."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            first, exchange = (
                [value * 1e3 for run in group if (value := run.metric(metric)) is not None]
                for metric in ("first_step_s", "first_exchange_s")
            )
            steady = [value * 1e3 for run in group if (value := run.metric("step_s")) is not None]
            if first and steady:
                cells = [_median(values) for values in (first, exchange, steady)]
                rows.append(Row(heading(key, groups), [Cell(name), Cell(str(ranks)), *cells, Cell(str(len(first)))]))
    caption = (
        "First use, in no other number: what the first step takes above a steady one, and the first all-reduces of "
        "all buckets above later ones."
    )
    return Table(
        caption,
        ["arm", "ranks", "first step, more (ms) ↓", "first exchanges, more (ms) ↓", "steady step (ms) ↓", "launches"],
        rows,
    )


def _median(values: list[float]) -> Cell:
    if not values:
        return Cell("–")
    stats = summary(values)
    return _cell(stats.median, stats.low, stats.high)


def ranks_compared(groups: Groups) -> Table:
    """Own times of the ranks, and whether one is slower than the others over launches."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            times = [
                times
                for run in group
                if ranks > 1 and run.record and (times := stragglers.rank_times(run.record, run.samples)) is not None
            ]
            own = [table["own"].tolist() for table in times if len(table) == ranks]
            finding = stragglers.find(own)
            if finding is None:
                continue
            each = " / ".join(significant(value * 1e3) for value in np.median(own, axis=0))
            spread = summary(value for run in group if (value := run.metric("rank_spread")) is not None)
            cells = [
                Cell(name),
                Cell(str(ranks)),
                Cell(each),
                Cell(percent(spread.median)),
                Cell(words(finding)),
                Cell(str(finding.n)),
            ]
            rows.append(Row(heading(key, groups), cells))
    caption = (
        "Ranks compared: own time per step (step without exposed communication, ms, by rank: medians over launches), "
        "spread in a launch, and the slowest rank "
        f"where it is more than {percent(stragglers.SHARE)} above the median of the others and the order within "
        "launches is not chance (permutation test, 5 %)."
    )
    return Table(caption, ["arm", "ranks", "own time by rank (ms) ↓", "spread ↓", "straggler", "launches"], rows)


def words(finding: stragglers.Finding) -> str:
    """What a table says of it."""
    if finding.straggler:
        return f"rank {finding.rank}: {percent(finding.share)} more (p = {finding.p:.2g})"
    return "no straggler" if finding.n >= 6 else "no straggler named: fewer than 6 launches"
