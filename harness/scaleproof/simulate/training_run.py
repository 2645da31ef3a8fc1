"""Training steps of all ranks in the event engine: the items of a step (strategies/step_program.py) become tasks of
every rank, with what each waits for. All messages of all steps move over one network on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.simulate.call_coordinator import Coordinator
from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.collective_schedules import Pattern
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.simulated_spans import Span
from scaleproof.simulate.tensor_servers import Serving
from scaleproof.strategies.step_program import Compute, Item, Pushed, Served, Submit, Wait


@dataclass(frozen=True, slots=True)
class Moment:
    """When tasks start, or end; a task per rank."""

    tasks: np.ndarray
    at_end: bool = True

    def of(self, engine: Engine) -> np.ndarray:
        """The times in s."""
        return (engine.end if self.at_end else engine.start)[self.tasks]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A span whose times are known when all has run."""

    event: str
    step: int
    start: Moment
    end: Moment
    nbytes: int = 0


@dataclass(slots=True)
class Submitted:
    """A collective call of all ranks. `made`: the task of each rank after which it is made; `tasks`: of the call."""

    item: Submit
    step: int
    made: np.ndarray
    tasks: np.ndarray


class TrainingRun:
    """Builds the tasks. `main`: the last task of each rank's main thread. Every method adds what all ranks do next.
    `handover`: s from the main thread to the one that makes the calls, and back."""

    def __init__(
        self,
        engine: Engine,
        ranks: int,
        calls: CallSchedules,
        channels: int,
        by_main: bool,
        serving: Serving,
        coordinator: Coordinator | None,
        handover: float = 0.0,
    ) -> None:
        self.engine, self.ranks, self._calls, self._by_main, self._serving = engine, ranks, calls, by_main, serving
        self._coordinator, self._handover = coordinator, handover
        self._lanes = [engine.lanes(ranks) for _ in range(channels)]
        self.main = engine.work(0.0, count=ranks)
        self.spans: list[Recorded] = []
        self._of_calls: list[Recorded] = []
        self._latest: dict[int, Submitted] = {}
        self._delayed: list[Submitted] = []
        """Calls that move nothing before the main thread waits."""

    def step(self, number: int, items: Sequence[Item], patterns: Sequence[Pattern | None], factors: np.ndarray) -> None:
        """A step; `patterns`: of the items that are calls; `factors`: of each rank's computing."""
        began, pushed = self.main, dict[int, np.ndarray]()
        for item, pattern in zip(items, patterns, strict=True):
            if isinstance(item, Compute):
                self._compute(item, number, factors)
            elif isinstance(item, Submit):
                assert pattern is not None
                self._submit(item, number, pattern)
            elif isinstance(item, Wait):
                self._wait(item, number)
            elif isinstance(item, Pushed):
                pushed[item.index] = self.main
            elif isinstance(item, Served):
                self._serve(number, pushed, began, factors)
        self.spans.append(Recorded("step", number, Moment(began), Moment(self.main)))

    def barrier(self) -> None:
        """All ranks wait for each other, and for all calls so far."""
        self._run_delayed(None)
        before = [self.main, *(call.tasks for call in self._latest.values())]
        together = self.engine.work(0.0)
        self._wait_for(np.repeat(together, sum(map(len, before))), np.concatenate(before))
        self.main = np.repeat(together, self.ranks)

    def run(self) -> list[Span]:
        """Runs all that was added, and returns its spans."""
        while len(ended := self.engine.run()):
            assert self._coordinator is not None
            self._coordinator.told(ended)
        return [
            Span(each.event, each.step, each.start.of(self.engine), each.end.of(self.engine), each.nbytes)
            for each in [*self.spans, *self._of_calls]
        ]

    def _compute(self, item: Compute, step: int, factors: np.ndarray) -> None:
        tasks = self._after_main(item.seconds * factors)
        before = self.spans[-1] if self.spans else None
        if before is not None and before.event == item.event and before.end.tasks is self.main:
            self.spans[-1] = Recorded(item.event, step, before.start, Moment(tasks))
        else:
            self.spans.append(Recorded(item.event, step, Moment(self.main), Moment(tasks)))
        self.main = tasks

    def _submit(self, item: Submit, step: int, pattern: Pattern) -> None:
        channel = item.number % len(self._lanes)
        schedule = self._calls.of(pattern, item.nbytes, channel)
        if self._by_main:
            call = Submitted(item, step, self.main, np.full(self.ranks, schedule))
            self._delayed.append(call)
        elif self._coordinator is not None:
            call = Submitted(item, step, self.main, np.full(self.ranks, NONE))
            call.tasks = self._coordinator.submit(
                pattern,
                item.nbytes,
                item.priority,
                self._handed_over(self.main),
                lambda tasks: self._record_call(call, Moment(tasks, at_end=False)),
            )
        else:
            tasks = self.engine.call(schedule, self._lanes[channel])
            self._wait_for(tasks, self._handed_over(self.main))
            call = Submitted(item, step, self.main, tasks)
            self._record_call(call, Moment(tasks, at_end=False))
        self._latest[item.number] = call

    def _handed_over(self, tasks: np.ndarray) -> np.ndarray:
        """A task per rank after which its other thread goes on."""
        if not self._handover:
            return tasks
        after = self.engine.work(self._handover, count=self.ranks)
        self._wait_for(after, tasks)
        return after

    def _record_call(self, call: Submitted, start: Moment) -> None:
        nbytes = int(call.item.nbytes)
        self._of_calls.append(Recorded("queue", call.step, Moment(call.made), start, nbytes))
        self._of_calls.append(Recorded("communication", call.step, start, Moment(call.tasks), nbytes))

    def _wait(self, item: Wait, step: int) -> None:
        if item.number is not None and item.number not in self._latest:
            return  # the first step has no earlier call to wait for
        before = self.main
        self._run_delayed(item.number)
        chosen = self._latest.values() if item.number is None else [self._latest[item.number]]
        waited = self._after_main(0.0)
        for call in chosen:
            self._wait_for(waited, self._handed_over(call.tasks))
        self.spans.append(Recorded(item.event, step, Moment(before), Moment(waited), int(item.nbytes)))
        self.main = waited

    def _run_delayed(self, last: int | None) -> None:
        """The main thread runs delayed calls to their end in order: up to number `last`, or all. A call counts as
        started when it was made, although it has moved nothing since."""
        numbers = [call.item.number for call in self._delayed]
        count = len(numbers) if last is None else numbers.index(last) + 1 if last in numbers else 0
        chosen, self._delayed = self._delayed[:count], self._delayed[count:]
        for call in chosen:
            tasks = self.engine.call(int(call.tasks[0]), np.full(self.ranks, NONE))
            self._wait_for(tasks, self.main)
            call.tasks = self.main = tasks
            self._record_call(call, Moment(call.made))

    def _serve(self, step: int, pushed: dict[int, np.ndarray], began: np.ndarray, factors: np.ndarray) -> None:
        before = self.main
        served = self._serving.add(pushed, began, before, factors)
        self.main = served.end
        self.spans.append(Recorded("wait", step, Moment(before), Moment(served.end)))
        self.spans += [Recorded("update", step, Moment(update.start), Moment(update.end)) for update in served.updates]
        for index, received in served.received.items():
            nbytes = int(self._serving.nbytes(index))
            self.spans.append(Recorded("queue", step, Moment(pushed[index]), Moment(pushed[index]), nbytes))
            self.spans.append(Recorded("communication", step, Moment(pushed[index]), Moment(received), nbytes))

    def _after_main(self, seconds: np.ndarray | float) -> np.ndarray:
        """Work of each rank's main thread after all that it has done."""
        tasks = self.engine.work(seconds, count=self.ranks)
        self._wait_for(tasks, self.main)
        return tasks

    def _wait_for(self, tasks: np.ndarray, earlier: np.ndarray) -> None:
        self.engine.after(tasks, earlier)
