"""The section of strategies whose ranks have programs of their own: what a rank waits for in its steps, and what it
sends."""

from __future__ import annotations

import numpy as np

from scaleproof.claims import replica_split
from scaleproof.report.data import Run
from scaleproof.report.figures.split import split
from scaleproof.report.groups import by_arm_and_ranks, by_network_and_level, heading, summary, training
from scaleproof.report.numbers import significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, median_cell, section, swatches

METRICS = tuple(f"{part}_s" for part in replica_split.PARTS)
NAMES = tuple(part.replace("_", " ") for part in replica_split.PARTS)
HOW = (
    "Each bar is a mean step of a mean rank that trains; every moment of a step belongs to one part, by interval "
    "union. {paces} What a rank waits for follows from what it does: a message or an answer of a peer, of a server, or "
    "a barrier. Other is what no event explains, such as the strategy's own arithmetic."
)
PACES = {
    "own": "Ranks go at their own pace: nobody waits for all others unless the strategy says so, so there is no "
    "imbalance.",
    "lockstep": "Ranks keep in step by their messages: one that is ahead waits for a peer, and that is where imbalance "
    "is.",
}
SENT: dict[str, str] = {
    "throughput": "throughput (samples/s) ↑",
    "model_bytes_per_step": "model bytes per step",
    "model_messages": "model messages per step",
    "control_messages": "control messages per step",
    "control_bytes_per_step": "control bytes per step",
    "staleness": "staleness (updates)",
    "staleness_p95": "staleness, 95 % (updates)",
    "dropped_share": "dropped gradients",
    "barrier_share": "at barriers",
    "consensus_distance": "consensus distance",
}


def own_pace_sections(runs: list[Run]) -> list[Section]:
    """One section; none without such launches."""
    groups = by_network_and_level(runs)
    panels, rows, csv_rows = list[Panel](), list[Row](), list[tuple[object, ...]]()
    for key, launches in groups.items():
        title, bars = heading(key, groups), dict[str, tuple[float, ...]]()
        for (name, ranks), group in by_arm_and_ranks(launches).items():
            csv_rows += [(*key, name, ranks, run.launch, *(run.metric(metric) for metric in METRICS)) for run in group]
            parts = _milliseconds(group)
            if len(parts):
                bars[f"{name}, {ranks} ranks"] = tuple(parts.mean(axis=0))
                rows.append(Row(title, _cells(name, ranks, parts)))
        if bars:
            panels.append(Panel(title, split(f"Parts of a step, {title}", bars, NAMES)))
    if not runs:
        return []
    caption = (
        "Time per step of a rank that trains, in ms: mean over launches of each part ↓, and the median of their sum."
    )
    columns = ["arm", "ranks", *(f"{name} (ms)" for name in NAMES), "sum (ms) ↓", "launches"]
    return [
        section(
            "own-pace",
            "Where the time of a step goes, and whom a rank waits for",
            HOW.format(paces=_paces(runs)),
            [*METRICS, "exposed_communication_s", *SENT],
            panels,
            swatches(NAMES),
            ("experiment", "network", "arm", "ranks", "launch", *METRICS),
            csv_rows,
            runs,
            [Table(caption, columns, rows), _sent(runs)],
        )
    ]


def _paces(runs: list[Run]) -> str:
    """Of the strategies of these launches, each told once."""
    found = {traits.pace for run in runs if (traits := training(run).replicas) is not None}
    return " ".join(text for pace, text in PACES.items() if pace in found)


def _milliseconds(runs: list[Run]) -> np.ndarray:
    """A row per launch that has all parts, a column per part."""
    parts = [[run.metric(metric) for metric in METRICS] for run in runs]
    return np.array([[value * 1e3 for value in values if value is not None] for values in parts if None not in values])


def _cells(name: str, ranks: int, parts: np.ndarray) -> list[Cell]:
    means = (Cell(significant(float(value))) for value in parts.mean(axis=0))
    return [Cell(name), Cell(str(ranks)), *means, median_cell(summary(parts.sum(axis=1))), Cell(str(len(parts)))]


def _sent(runs: list[Run]) -> Table:
    """What ranks send, how stale gradients are and how far replicas are apart; only columns with a value."""
    groups = by_network_and_level(runs)
    shown = [name for name in SENT if any(run.metric(name) is not None for run in runs)]
    rows = []
    for key, launches in groups.items():
        for (name, ranks), group in by_arm_and_ranks(launches).items():
            found = [[value for run in group if (value := run.metric(metric)) is not None] for metric in shown]
            cells = [median_cell(summary(values) if values else None) for values in found]
            workers = str(training(group[0]).workers)
            rows.append(Row(heading(key, groups), [Cell(name), Cell(str(ranks)), Cell(workers), *cells]))
    caption = "What ranks send, and how far they are apart: medians over launches with their intervals."
    return Table(caption, ["arm", "ranks", "ranks that train", *(SENT[name] for name in shown)], rows if shown else [])
