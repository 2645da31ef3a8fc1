"""A pipeline's schedule: an order of passes for each worker, and what must be true of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, NamedTuple

from scaleproof.spec.errors import SpecError

Direction = Literal["forward", "backward"]


class Pass(NamedTuple):
    """A stage's forward or backward pass of some units.

    `pipeline`: which replica of the stages; `units`: numbers of what a backward pass handles at once, which is a
    micro-batch, or a part of one (Schedule.unit)."""

    pipeline: int
    stage: int
    direction: Direction
    units: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """`orders`: the passes of each worker, in their order. `slots`: in which slot the scheme has each of them, where
    every pass takes one; others begin as soon as their worker is free (timing.py), in the same order. `unit`:
    micro-batches that a unit is (1, or 1/2 where backward passes are halved). `flush`: whether all gradients of an
    iteration are there before the update, as in synchronous training; else an iteration follows the one before it
    without a gap."""

    scheme: str
    stages: int
    micro_batches: int
    orders: tuple[tuple[Pass, ...], ...]
    slots: tuple[tuple[int, ...], ...]
    unit: Fraction = Fraction(1)
    flush: bool = True

    @property
    def pipelines(self) -> int:
        """Replicas of the stages among the workers."""
        return 1 + max(each.pipeline for order in self.orders for each in order)

    def workers_of(self) -> dict[tuple[int, int], int]:
        """Worker by pipeline and stage."""
        return {(each.pipeline, each.stage): worker for worker, order in enumerate(self.orders) for each in order}

    def held(self, worker: int) -> list[tuple[int, int]]:
        """Pipeline and stage of the weights that a worker holds."""
        return sorted({(each.pipeline, each.stage) for each in self.orders[worker]})


def check(schedule: Schedule) -> None:
    """Raises ValueError with the first thing that is wrong: a unit that a stage does not see once in each direction, a
    stage on two workers, a backward pass before its forward pass on the same worker, two passes of a worker in one
    slot, or a slot that is not after that of the pass before, of the worker or at the neighbouring stage."""
    seen: Counter[tuple[int, Direction, int]] = Counter()
    places: dict[tuple[int, int], int] = {}
    pipeline_of: dict[int, int] = {}
    for worker, order in enumerate(schedule.orders):
        done: set[tuple[int, int]] = set()
        for each in order:
            if places.setdefault((each.pipeline, each.stage), worker) != worker:
                raise ValueError(f"stage {each.stage} of pipeline {each.pipeline} is on two workers")
            for unit in each.units:
                seen[each.stage, each.direction, unit] += 1
                if pipeline_of.setdefault(unit, each.pipeline) != each.pipeline:
                    raise ValueError(f"unit {unit} is in two pipelines")
                if each.direction == "forward":
                    done.add((each.stage, unit))
                elif (each.stage, unit) not in done:
                    raise ValueError(f"worker {worker}: backward pass of unit {unit} before its forward pass")
    units = round(schedule.micro_batches / schedule.unit)
    directions: tuple[Direction, ...] = ("forward", "backward")
    wanted = {
        (stage, direction, unit)
        for stage in range(schedule.stages)
        for direction in directions
        for unit in range(units)
    }
    wrong = sorted(key for key in wanted | set(seen) if seen[key] != int(key in wanted))
    if wrong:
        stage, direction, unit = wrong[0]
        raise ValueError(f"stage {stage} has {seen[wrong[0]]} {direction} passes of unit {unit}")
    _check_slots(schedule)


def _check_slots(schedule: Schedule) -> None:
    slot_of: dict[tuple[int, Direction, int], int] = {}
    for worker, (order, slots) in enumerate(zip(schedule.orders, schedule.slots, strict=True)):
        for before, slot in pairwise(slots):
            if slot == before:
                raise ValueError(f"worker {worker} has two passes in slot {slot}")
            if slot < before:
                raise ValueError(f"worker {worker}: the pass in slot {slot} is behind that in slot {before}")
        for each, slot in zip(order, slots, strict=True):
            slot_of |= {(each.stage, each.direction, unit): slot for unit in each.units}
    for (stage, direction, unit), slot in slot_of.items():
        needed = _needed(schedule.stages, stage, direction)
        if needed is not None and slot_of[*needed, unit] >= slot:
            raise ValueError(f"stage {stage}: the {direction} pass of unit {unit} is not after the one that it needs")


def _needed(stages: int, stage: int, direction: Direction) -> tuple[int, Direction] | None:
    """Stage and direction of the pass whose result a pass takes; None where it takes samples."""
    if direction == "forward":
        return (stage - 1, "forward") if stage else None
    return (stage + 1, "backward") if stage + 1 < stages else (stage, "forward")


def refuse(scheme: str, what: str, value: int, nearest: Sequence[int]) -> SpecError:
    """One line that names values which would do, of `nearest` those above 0."""
    fitting = " or ".join(str(each) for each in nearest if each > 0)
    return SpecError(f"{scheme}: {what} {value} does not fit; {fitting} would do")
