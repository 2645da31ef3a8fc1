"""A pipeline's schedule: an order of passes for each worker, and what must be true of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from scaleproof.spec.errors import SpecError

Direction = Literal["forward", "backward"]


class Pass(NamedTuple):
    """One slot of a worker: a stage's forward or backward pass of some units.

    `pipeline`: which replica of the stages; `units`: numbers of what a backward pass handles at once, which is a
    micro-batch, or a part of one (Schedule.unit)."""

    pipeline: int
    stage: int
    direction: Direction
    units: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """`orders`: the passes of each worker, in their order. `unit`: micro-batches that a unit is (1, or 1/2 where
    backward passes are halved). `flush`: whether all gradients of an iteration are there before the update, as in
    synchronous training; else an iteration follows the one before it without a gap."""

    scheme: str
    stages: int
    micro_batches: int
    orders: tuple[tuple[Pass, ...], ...]
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
    stage on two workers, or a backward pass before its forward pass on the same worker."""
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


def refuse(scheme: str, what: str, value: int, nearest: Sequence[int]) -> SpecError:
    """One line that names values which would do, of `nearest` those above 0."""
    fitting = " or ".join(str(each) for each in nearest if each > 0)
    return SpecError(f"{scheme}: {what} {value} does not fit; {fitting} would do")
