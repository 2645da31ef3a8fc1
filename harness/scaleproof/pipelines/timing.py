"""When the passes of a schedule happen: every pass as soon as its worker is free and what it needs is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scaleproof.core.collection_paused import collection_paused
from scaleproof.pipelines.schedule import Pass, Schedule

OfStages = float | tuple[float, ...]
"""One for all stages, or one for each."""
GradientSync = Literal["eager", "eager_opt", "late"]
"""When a worker begins to add up a stage's gradients: after the stage's last backward pass; the same where the worker
has a gap after it, else after all passes; or after all passes."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds (or any unit of time) that a stage's passes of one whole micro-batch take, and that a message between
    neighbouring stages takes. `recompute`: the forward pass is repeated before each backward pass."""

    forward: OfStages = 1.0
    backward: OfStages = 1.0
    message: float = 0.0
    recompute: bool = False

    def seconds(self, backward: np.ndarray, stages: np.ndarray, micro_batches: np.ndarray) -> np.ndarray:
        """Of passes: whether each is backward, its stage, and how many micro-batches it handles."""
        forward, back = (
            np.asarray(each)[stages] if isinstance(each, tuple) else each for each in (self.forward, self.backward)
        )
        found: np.ndarray = np.where(backward, back + forward * self.recompute, forward) * micro_batches
        return found


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
    def busy(self) -> float:
        """Time of all passes of all workers."""
        return sum(end - start for spans in self.spans for start, end in spans)

    @property
    def idle_share(self) -> float:
        """Share of the makespan in which a worker does nothing, on average over workers: the bubble ratio."""
        return 1 - self.busy / (self.makespan * len(self.spans))


class Deadlock(ValueError):
    """The orders of the workers wait for each other."""


@collection_paused()
def timeline(schedule: Schedule, times: PassTimes) -> Timeline:
    """Raises Deadlock with the pass that each worker waits in. In each round every worker whose next pass has what it
    needs begins it; what is there on the same worker is there by its order."""
    passes = _Passes(schedule, times)
    workers = len(schedule.orders)
    free, position, left = np.zeros(workers), np.zeros(workers, int), passes.counts.copy()
    starts, live = np.zeros(passes.seconds.shape), np.flatnonzero(left)
    while len(live):
        here = position[live]
        ready = passes.ready(live, here)
        begins = ready == ready  # NaN: not there yet
        if not begins.any():
            raise Deadlock(f"workers wait for each other: {_waiting(schedule.orders, position.tolist())}")
        live_now, here = live[begins], here[begins]
        start = np.maximum(ready[begins], free[live_now])
        starts[live_now, here] = start
        free[live_now] = passes.end(live_now, here, start)
        position[live_now] += 1
        left[live_now] -= 1
        if not left[live_now].all():
            live = np.flatnonzero(left)
    ends = starts + passes.seconds
    spans = zip(starts.tolist(), ends.tolist(), passes.counts.tolist(), strict=True)
    return Timeline(schedule, tuple(tuple(zip(start[:n], end[:n], strict=True)) for start, end, n in spans))


class _Passes:
    """All passes as arrays (workers, passes of the busiest). `seconds`: of each. A pass needs the ends of the passes of
    its units at the neighbouring stage, and gives its own."""

    def __init__(self, schedule: Schedule, times: PassTimes) -> None:
        orders, stages = schedule.orders, schedule.stages
        self.counts = np.array([len(order) for order in orders])
        every = [each for order in orders for each in order]
        _, of_stage, directions, handled = zip(*every, strict=True) if every else ((), (), (), ())
        stage, count = np.array(of_stage, int), np.array([len(units) for units in handled], int)
        backward = np.array([direction == "backward" for direction in directions], bool)
        units = round(schedule.micro_batches / schedule.unit)
        shape, widest = (len(orders), int(self.counts.max(initial=0))), int(count.max(initial=1))
        size = 2 * stages * units
        self.seconds = np.zeros(shape)
        self._needs = np.full((*shape, widest), size)
        self._gives = np.full((*shape, widest), size + 1)
        at, slot = np.nonzero(np.arange(shape[1]) < self.counts[:, None])  # row by row: as in `every`
        self.seconds[at, slot] = times.seconds(backward, stage, count * float(schedule.unit))
        before = np.where(backward, stage + 1, stage - 1)
        there = (before >= 0) & (before < stages)
        for place in range(widest):
            number = np.array([each[place] if place < len(each) else -1 for each in handled], int)
            of_pass = (backward * stages + stage) * units + number
            of_need = (backward * stages + before) * units + number
            self._gives[at, slot, place] = np.where(number >= 0, of_pass, size + 1)
            self._needs[at, slot, place] = np.where(there & (number >= 0), of_need, size)
        self._ends = np.full(size + 2, np.nan)
        self._ends[size] = 0.0
        self._message = times.message

    def ready(self, workers: np.ndarray, places: np.ndarray) -> np.ndarray:
        """When what these passes need has arrived; NaN: that is not known yet."""
        found: np.ndarray = self._ends[self._needs[workers, places]].max(axis=1)
        return found

    def end(self, workers: np.ndarray, places: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Of passes that start then."""
        end: np.ndarray = start + self.seconds[workers, places]
        self._ends[self._gives[workers, places]] = (end + self._message)[:, None]
        return end


def _waiting(orders: Sequence[Sequence[Pass]], position: Sequence[int]) -> str:
    """The pass that each worker has not begun."""
    found = [
        f"worker {worker} in the {order[at].direction} pass of unit {order[at].units[0]} at stage {order[at].stage}"
        for worker, (order, at) in enumerate(zip(orders, position, strict=True))
        if at < len(order)
    ]
    return ", ".join(found)


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


def gaps_after(schedule: Schedule, worker: int) -> set[int]:
    """Pipelines of a worker after whose last pass it is idle for a while before all are done, or has no other pass left
    (where a backward pass takes twice a forward pass)."""
    spans = timeline(schedule, PassTimes(backward=2.0)).spans[worker]
    order, found = schedule.orders[worker], set[int]()
    gaps = [place for place in range(1, len(spans)) if spans[place][0] > spans[place - 1][1]]
    last_of = {each.pipeline: place for place, each in enumerate(order)}
    for pipeline, place in last_of.items():
        if place == len(order) - 1 or any(gap > place for gap in gaps):
            found.add(pipeline)
    return found


def begun_early(gradient_sync: GradientSync, schedule: Schedule, worker: int) -> set[int]:
    """Pipelines of a worker whose stage's gradients are added up from its last backward pass on."""
    if gradient_sync == "late":
        return set()
    if gradient_sync == "eager":
        return {pipeline for pipeline, _ in schedule.held(worker)}
    return gaps_after(schedule, worker)
