"""The control arms of a training: its step beside the same step without communication and without compute."""

from __future__ import annotations

from typing import NamedTuple

from scaleproof.report.data import Run
from scaleproof.report.groups import Groups, Summary, by_arm_and_ranks, heading, summary, training
from scaleproof.report.numbers import percent, significant
from scaleproof.report.sections import Cell, Row, Table, median_cell

CONTROLS_CAPTION = (
    "Control arms: the step, the step with communication off, the step with compute off (median over launches, "
    "interval). Perfect overlap costs the longer "
    "of the two, none costs their sum; hidden is the share of the shorter one that is saved. Below 0: the two "
    "disturb each other."
)
CONTROLS_COLUMNS = [
    "arm",
    "ranks",
    "step (ms)",
    "communication off (ms)",
    "compute off (ms)",
    "longer (ms)",
    "sum (ms)",
    "between",
    "hidden ↑",
]
IDLE_CONTROL_FIELDS = ("transport", "collective", "ranks", "threads_per_rank", "framework")
"""Fields in which an arm and its control without compute are equal."""


class ControlSteps(NamedTuple):
    """Times of a step in ms: as it is, with communication off, and with compute off."""

    step: Summary
    compute: Summary
    exchange: Summary


def controls(groups: Groups) -> Table:
    """A step beside the same step without communication and without compute."""
    rows = []
    for key, runs in groups.items():
        for (name, ranks), group in by_arm_and_ranks(runs).items():
            steps = _control_steps(group, runs)
            if steps is not None:
                rows.append(Row(heading(key, groups), [Cell(name), Cell(str(ranks)), *_control_cells(steps)]))
    return Table(CONTROLS_CAPTION, CONTROLS_COLUMNS, rows)


def _control_steps(group: list[Run], runs: list[Run]) -> ControlSteps | None:
    """`group`: launches of one arm; `runs`: all of the panel. None if the arm has no control of both kinds."""
    case = training(group[0])
    if case.transport is None or case.compute == "none":
        return None
    silent = [run for run in runs if training(run).transport is None and training(run).ranks == case.ranks]
    idle = [
        run
        for run in runs
        if training(run).compute == "none"
        and all(training(run).value(field) == case.value(field) for field in IDLE_CONTROL_FIELDS)
    ]
    times = [
        [value * 1e3 for run in launches if (value := run.metric("step_s")) is not None]
        for launches in (group, silent, idle)
    ]
    return ControlSteps(*map(summary, times)) if all(times) else None


def _control_cells(steps: ControlSteps) -> list[Cell]:
    step, compute, exchange = (stats.median for stats in steps)
    longer, together = max(compute, exchange), compute + exchange
    hidden = (together - step) / min(compute, exchange)
    return [
        *map(median_cell, steps),
        Cell(significant(longer)),
        Cell(significant(together)),
        Cell("yes" if longer <= step <= together else "no"),
        Cell(percent(hidden)),
    ]
