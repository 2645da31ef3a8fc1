"""GEMS (Jain et al. 2020): two replicas of the stages in opposite directions, of which one micro-batch at a time is on
its way forward and another one backward; a worker holds the activations of one."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.pipelines.schedule import Pass, Schedule
from scaleproof.pipelines.scheme import Scheme


def gems(stages: int, micro_batches: int) -> Schedule:
    """A micro-batch goes forward behind the backward pass of the one before it, which goes the same way."""
    orders = tuple(tuple(_passes(worker, stages, micro_batches)) for worker in range(stages))
    return Schedule(
        "gems", stages, micro_batches, orders, tuple(tuple(_slot(each, stages) for each in order) for order in orders)
    )


def _slot(each: Pass, stages: int) -> int:
    """A micro-batch begins D + 1 slots after the one before it."""
    begin = each.units[0] * (stages + 1)
    return begin + (each.stage if each.direction == "forward" else 2 * stages - 1 - each.stage)


def _passes(worker: int, stages: int, micro_batches: int) -> Iterator[Pass]:
    for number in range(micro_batches + 1):
        if number:
            yield _pass(worker, stages, number - 1, forward=False)
        if number < micro_batches:
            yield _pass(worker, stages, number, forward=True)


def _pass(worker: int, stages: int, number: int, *, forward: bool) -> Pass:
    pipeline = number % 2
    stage = stages - 1 - worker if pipeline else worker
    return Pass(pipeline, stage, "forward" if forward else "backward", (number,))


SCHEMES = (Scheme("gems", "two replicas in opposite directions, one micro-batch each", gems, lambda stages, count: 1),)
