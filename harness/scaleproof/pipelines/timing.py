"""When the passes of a schedule happen: every pass as soon as its worker is free and what it needs is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scaleproof.pipelines.schedule import Pass, Schedule

Key = tuple[int, str, int]
"""Stage, direction and unit."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds (or any unit of time) that a stage's passes of one whole micro-batch take, and that a message between
    neighbouring stages takes. `recompute`: the forward pass is repeated before each backward pass."""

    forward: float = 1.0
    backward: float = 1.0
    message: float = 0.0
    recompute: bool = False

    def of(self, each: Pass, unit: float) -> float:
        """Of one pass."""
        whole = self.forward
        if each.direction == "backward":
            whole = self.backward + (self.forward if self.recompute else 0.0)
        return whole * len(each.units) * unit


@dataclass(frozen=True)
class Timeline:
    """Start and end of every pass by worker, in the order of the schedule."""

    schedule: Schedule
    spans: tuple[tuple[tuple[float, float], ...], ...]

    @property
    def makespan(self) -> float:
        """From the first start to the last end."""
        return max(end for spans in self.spans for _, end in spans)

    @property
    def idle_share(self) -> float:
        """Share of the makespan in which a worker does nothing, on average over workers: the bubble ratio."""
        busy = sum(end - start for spans in self.spans for start, end in spans)
        return 1 - busy / (self.makespan * len(self.spans))


def busy_time(schedule: Schedule, times: PassTimes) -> float:
    """Of all workers together."""
    return sum(times.of(each, float(schedule.unit)) for order in schedule.orders for each in order)


class Deadlock(ValueError):
    """The orders of the workers wait for each other."""


def timeline(schedule: Schedule, times: PassTimes) -> Timeline:
    """Raises Deadlock with the pass that each worker waits in."""
    orders, unit = schedule.orders, float(schedule.unit)
    ends: dict[Key, float] = {}
    free, position = [0.0] * len(orders), [0] * len(orders)
    spans: list[list[tuple[float, float]]] = [[] for _ in orders]
    left = sum(map(len, orders))
    while left:
        before = left
        for worker, order in enumerate(orders):
            while position[worker] < len(order):
                each = order[position[worker]]
                start = _ready(each, ends, schedule.stages, times.message)
                if start is None:
                    break
                start = max(start, free[worker])
                free[worker] = end = start + times.of(each, unit)
                spans[worker].append((start, end))
                for number in each.units:
                    ends[each.stage, each.direction, number] = end
                position[worker] += 1
                left -= 1
        if left == before:
            raise Deadlock(f"workers wait for each other: {_waiting(orders, position)}")
    return Timeline(schedule, tuple(map(tuple, spans)))


def _waiting(orders: Sequence[Sequence[Pass]], position: Sequence[int]) -> str:
    """The pass that each worker has not begun."""
    found = [
        f"worker {worker} in the {order[at].direction} pass of unit {order[at].units[0]} at stage {order[at].stage}"
        for worker, (order, at) in enumerate(zip(orders, position, strict=True))
        if at < len(order)
    ]
    return ", ".join(found)


def _ready(each: Pass, ends: Mapping[Key, float], stages: int, message: float) -> float | None:
    """When what a pass needs is there; None while that is not known."""
    found = 0.0
    for unit in each.units:
        for key, delay in _needs(each, unit, stages, message):
            if key not in ends:
                return None
            found = max(found, ends[key] + delay)
    return found


def _needs(each: Pass, unit: int, stages: int, message: float) -> Sequence[tuple[Key, float]]:
    if each.direction == "forward":
        return [((each.stage - 1, "forward", unit), message)] if each.stage else []
    own = ((each.stage, "forward", unit), 0.0)
    if each.stage == stages - 1:
        return [own]
    return [own, ((each.stage + 1, "backward", unit), message)]


def stashed(schedule: Schedule) -> list[float]:
    """The most micro-batches whose activations a worker holds at one time, in units of a stage's activations."""
    most = []
    for order in schedule.orders:
        held = peak = 0
        for each in order:
            held += len(each.units) if each.direction == "forward" else -len(each.units)
            peak = max(peak, held)
        most.append(peak * float(schedule.unit))
    return most
