"""The table of time and samples to the target accuracy: medians, MLPerf's score, and launches that never reached it."""

from __future__ import annotations

from scaleproof.claims.metrics_quality import not_reached, target_of
from scaleproof.report.data import Run
from scaleproof.report.groups import Groups, by_arm_and_ranks, heading, summary
from scaleproof.report.numbers import significant
from scaleproof.report.sections import Cell, Row, Table, median_cell
from scaleproof.stats.intervals import smallest_count
from scaleproof.stats.time_to_quality import DROPPED, score

COLUMNS = [
    "arm",
    "ranks",
    "target",
    "time to target (s) ↓",
    "MLPerf score (s) ↓",
    "samples to target ↓",
    "launches",
    "not reached",
]


def targets_table(groups: Groups) -> Table:
    """Arms whose launches were evaluated on a data set with a target; no row for others."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), launches in by_arm_and_ranks(runs).items():
            if cells := _cells(launches):
                rows.append(Row(heading(key, groups), [Cell(name), Cell(str(ranks)), *cells]))
    caption = (
        "Time and samples to the target accuracy of the data set: medians over the launches that reached it, with "
        f"their intervals. MLPerf's score is the mean without the {DROPPED} fastest and the {DROPPED} slowest launch, "
        f"of at least {smallest_count()}; one launch may miss the target and counts as the slowest."
    )
    return Table(caption, COLUMNS, rows)


def _cells(runs: list[Run]) -> list[Cell]:
    """None where no launch was evaluated."""
    records = [run.record for run in runs if run.record is not None]
    target = target_of(records[0].case) if records else None
    missed = [run for run in runs if run.record and not_reached(run.record, run.samples) is not None]
    times = [run.metric("time_to_quality") for run in runs]
    samples = [value for run in runs if (value := run.metric("samples_to_quality")) is not None]
    reached = [value for value in times if value is not None]
    if target is None or not (reached or missed):
        return []
    scored = score(times, max(len(times), smallest_count()))
    return [
        Cell(significant(target)),
        median_cell(summary(reached) if reached else None),
        Cell(_score_text(scored.value, len(times))),
        median_cell(summary(samples) if samples else None),
        Cell(str(len(runs))),
        Cell(_missed(missed)),
    ]


def _score_text(value: float | None, launches: int) -> str:
    """MLPerf's score, or why there is none."""
    if value is not None:
        return significant(value)
    few = launches < smallest_count()
    return f"fewer than {smallest_count()} launches" if few else f"invalid: more than {DROPPED} missed it"


def _missed(runs: list[Run]) -> str:
    """How many launches missed the target, with their best value, and how many diverged."""
    diverged = [run for run in runs if run.metric("diverged_step") is not None]
    others = [run for run in runs if run not in diverged]
    parts = [f"{len(diverged)} diverged"] if diverged else []
    if others:
        accuracies = [rows.loc[rows["event"] == "test_accuracy", "value"] for rows in (run.samples for run in others)]
        best = max(float(values.max()) for values in accuracies)
        parts.insert(0, f"{len(others)}, best {significant(best)}")
    return "; ".join(parts) or "none"
