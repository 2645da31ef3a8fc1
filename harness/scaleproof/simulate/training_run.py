"""Training steps of all ranks in the event engine: the effects of a step (strategies/step_program.py) become tasks of
every rank, with what each waits for. All messages of all steps move over one network on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.rank_programs.effects import (
    Await,
    AwaitAll,
    Collective,
    Compute,
    Effect,
    Receive,
    Send,
    Start,
    Started,
)
from scaleproof.simulate.call_coordinator import Coordinator
from scaleproof.simulate.call_schedules import Schedules
from scaleproof.simulate.case_patterns import Patterns
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.shared_cores import SharedCores
from scaleproof.simulate.simulated_spans import Span
from scaleproof.simulate.tensor_servers import Serving
from scaleproof.strategies.parameter_server_step import parameter_of


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

    effect: Collective
    step: int
    made: np.ndarray
    tasks: np.ndarray


class TrainingRun:
    """Builds the tasks. `main`: the last task of each rank's main thread. `cores`: those that computing shares with
    messages, if it does; `handover`: s from the main thread to the one that makes the calls, and back. Every method
    adds what all ranks do next."""

    def __init__(
        self,
        engine: Engine,
        ranks: int,
        patterns: Patterns,
        calls: Schedules,
        channels: int,
        by_main: bool,
        serving: Serving,
        coordinator: Coordinator | None,
        cores: SharedCores | None = None,
        handover: float = 0.0,
    ) -> None:
        self.engine, self.ranks, self._patterns, self._schedules = engine, ranks, patterns, calls
        self._by_main, self._serving, self._coordinator, self._cores = by_main, serving, coordinator, cores
        self._handover = handover
        self._lanes = [engine.lanes(self.ranks) for _ in range(channels)]
        self.main = engine.work(0.0, count=self.ranks)
        self.spans: list[Recorded] = []
        self._of_calls: list[Recorded] = []
        self._calls: list[Submitted | None] = []
        self._before = 0
        """What this step and the one before it have started (None: a message to a server), and how much the latter."""
        self._delayed: list[Submitted] = []
        """Calls that move nothing before the main thread waits."""

    def step(self, number: int, effects: Sequence[Effect], factors: np.ndarray) -> None:
        """A step; `factors`: of each rank's computing."""
        began, pushed, served = self.main, dict[int, np.ndarray](), False
        if any(isinstance(effect, Start) and isinstance(effect.effect, Send) for effect in effects):
            self._begin_serving()
        self._calls = self._calls[self._before :]
        self._before = len(self._calls)
        for effect in effects:
            if isinstance(effect, Compute):
                self._compute(effect, number, factors)
            elif isinstance(effect, Start) and isinstance(effect.effect, Send):
                pushed[index := parameter_of(effect.effect.tag)] = self.main
                self._calls.append(None)
                self._push(index)
            elif isinstance(effect, Start):
                self._submit(effect, number)
            elif isinstance(effect, Receive) and not served:
                self._serve(number, pushed, began, factors)
                served = True  # with all that it receives
            elif isinstance(effect, Await):
                self._wait([effect.started], effect.event, effect.nbytes, number)
            elif isinstance(effect, AwaitAll) and not served:
                self._wait(effect.started, "wait", 0, number)
        self.spans.append(Recorded("step", number, Moment(began), Moment(self.main)))

    def barrier(self) -> None:
        """All ranks wait for each other, and for all calls so far."""
        self._run_delayed(self._delayed)
        before = [self.main, *(call.tasks for call in self._calls[self._before :] if call is not None)]
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
        if self._cores is None or not item.seconds:
            tasks = self._after_main(item.seconds * factors)
        else:
            tasks = self._cores.compute(item.seconds * factors)
            self._wait_for(tasks, self.main)
        before = self.spans[-1] if self.spans else None
        if before is not None and before.event == item.event and before.end.tasks is self.main:
            self.spans[-1] = Recorded(item.event, step, before.start, Moment(tasks))
        else:
            self.spans.append(Recorded(item.event, step, Moment(self.main), Moment(tasks)))
        self.main = tasks

    def _begin_serving(self) -> None:
        if (seconds := self._serving.begin_s()).any():
            self.main = self._after_main(seconds)

    def _push(self, index: int) -> None:
        """Handing a gradient over is a part of the pass that it interrupts."""
        seconds = self._serving.push_s(index)
        if not seconds.any():
            return
        before, last = self.main, self.spans[-1]
        self.main = self._after_main(seconds)
        if last.end.tasks is before:
            self.spans[-1] = replace(last, end=Moment(self.main))

    def _submit(self, effect: Start, step: int) -> None:
        made = effect.effect
        assert isinstance(made, Collective)
        pattern = self._patterns.of(made)
        schedule = self._schedules.of(pattern, made.nbytes, effect.lane)
        if self._by_main:
            call = Submitted(made, step, self.main, np.full(self.ranks, schedule))
            self._delayed.append(call)
        elif self._coordinator is not None:
            call = Submitted(made, step, self.main, np.full(self.ranks, NONE))
            call.tasks = self._coordinator.submit(
                pattern,
                made.nbytes,
                made.priority,
                self._handed_over(self.main),
                lambda tasks: self._record_call(call, Moment(tasks, at_end=False)),
            )
        else:
            tasks = self.engine.call(schedule, self._lanes[effect.lane])
            self._wait_for(tasks, self._handed_over(self.main))
            call = Submitted(made, step, self.main, tasks)
            self._record_call(call, Moment(tasks, at_end=False))
        self._calls.append(call)

    def _handed_over(self, tasks: np.ndarray) -> np.ndarray:
        """A task per rank after which its other thread goes on."""
        if not self._handover:
            return tasks
        after = self.engine.work(self._handover, count=self.ranks)
        self._wait_for(after, tasks)
        return after

    def _record_call(self, call: Submitted, start: Moment) -> None:
        nbytes = call.effect.nbytes
        self._of_calls.append(Recorded("queue", call.step, Moment(call.made), start, nbytes))
        self._of_calls.append(Recorded("communication", call.step, start, Moment(call.tasks), nbytes))

    def _wait(self, started: Sequence[Started], event: str, nbytes: int, step: int) -> None:
        before, chosen = self.main, [self._calls[self._before + each.number] for each in started]
        calls = [call for call in chosen if call is not None]
        self._run_delayed(calls)
        waited = self._after_main(0.0)
        for call in calls:
            self._wait_for(waited, self._handed_over(call.tasks))
        self.spans.append(Recorded(event, step, Moment(before), Moment(waited), nbytes))
        self.main = waited

    def _run_delayed(self, awaited: Sequence[Submitted]) -> None:
        """The main thread runs delayed calls to their end in order, up to the last of these. A call counts as started
        when it was made, although it has moved nothing since."""
        last = set(map(id, awaited))
        count = 1 + max((place for place, call in enumerate(self._delayed) if id(call) in last), default=-1)
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
