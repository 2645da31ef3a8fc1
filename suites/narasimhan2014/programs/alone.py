"""What the time of an iteration is made of, after the timed region: rank 0 solves by itself, on all samples and on a
quarter of them, and all ranks exchange what an iteration exchanges, with nothing to compute."""

from __future__ import annotations

import math

import numpy as np
from suite_programs.heuristics import ORIGINAL, Heuristic, heuristic
from suite_programs.messages import Messages
from suite_programs.solver import Machine
from suite_programs.task import Task, untimed

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now

QUARTER = 4
REPEATS = 5
"""Solutions of a quarter of the samples: one takes some ms."""


def solve_alone(
    context: RankContext, task: Task, names: list[str], chosen: dict[str, Heuristic], alphas: dict[str, np.ndarray]
) -> None:
    """Each heuristic by rank 0. Events `alone`, with its kernel elements, and `apart`: how far alpha of all ranks,
    float64 (training samples), is from its own."""
    made = task.problem
    alone = Task(made, task.eps, task.most, task.parts, _own_messages(task))
    for name, of in chosen.items():
        machine, start = alone.machine(), now()
        machine.solve(of, task.eps, task.most, task.parts, untimed)
        end, number = now(), names.index(name)
        context.recorder.add("alone", number, start, end, value=float(machine.curve.elements))
        context.recorder.add("apart", number, end, end, value=float(np.abs(machine.alpha - alphas[name]).max()))


def _own_messages(task: Task) -> Messages:
    rows = task.problem.train
    return Messages(None, len(rows), rows.longest, rows.features)


def solve_quarter(context: RankContext, task: Task, number: int) -> None:
    """Without shrinking, by rank 0. Events `part`, with kernel elements, and `part_iterations`, of all REPEATS."""
    whole = task.problem
    rows = whole.train.chosen(np.arange(len(whole.train) // QUARTER))
    labels, iterations, elements = whole.labels[: len(rows)], 0, 0
    messages = Messages(None, len(rows), whole.train.longest, rows.features)
    start = now()
    for _ in range(REPEATS):
        machine = Machine(rows, labels, whole.width, whole.limit, messages)
        curve = machine.solve(heuristic(ORIGINAL, len(rows)), task.eps, math.inf, 1, untimed)
        iterations, elements = iterations + curve.iterations, elements + curve.elements
    end = now()
    context.recorder.add("part", number, start, end, value=float(elements))
    context.recorder.add("part_iterations", number, end, end, value=float(iterations))


def exchange(context: RankContext, task: Task, number: int, count: int) -> None:
    """So many all-reduces of 16 bytes and twice as many broadcasts of a row, from drawn ranks. Event `exchange` on rank
    0, with their number."""
    messages = task.messages
    if messages.group is None:
        return
    owners = np.random.default_rng([context.seed, 11]).integers(messages.ranks, size=(count, 2)).tolist()
    messages.group.barrier()
    start = now()
    for first, second in owners:
        messages.exchange(first, second)
    if context.rank == 0:
        context.recorder.add("exchange", number, start, now(), value=float(count))
