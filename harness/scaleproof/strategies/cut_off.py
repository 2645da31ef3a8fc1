"""Cut-off (teng2018): a synchronous step takes the gradients that come first, and does not wait for the others. How
many it takes is predicted from the times of earlier steps. A gradient that comes too late is dropped, as Chen et al.
2016 drop it, and its worker goes on with the parameters of that moment."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import ANY, Charge, Effect, Gradient, Receive, Send, Update
from scaleproof.rank_programs.rank_program import Clock
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.cut_off_predictors import Ahead, Elfving, Oracle, PerWorker, Predictor, Seen, Static
from scaleproof.strategies.replica import CaseDelays, Replica, check_replicas
from scaleproof.workloads.learner import Learner

PUSH, PULL = 0, 1
ENDED = -1
SERVER = 0
SHARE = 0.96


class CutOffOptions(Options):
    """Options of cut-off."""

    predictor: Literal["all", "static", "elfving", "per_worker", "learned", "oracle"] = Field(
        "elfving",
        description="How many gradients a step waits for. all: those of all workers; static: a `share` of them; "
        "elfving: by order statistics of the last 20 steps, as if times were independent and normal; per_worker: by a "
        "running mean of each worker's times; learned: by a state-space model of all workers' times, trained before "
        "the launch on a synchronous run under the same `step_delay` with another seed; oracle: by the true delays of "
        "the case's laws. The warm-up waits for all.",
    )
    share: float = Field(SHARE, gt=0, le=1, description="Of workers, for predictor static.")


class CutOff(Replica):
    """Rank 0 serves. Messages begin with the number of their step."""

    def __init__(self, case: TrainCase, rank: int, clock: Clock, learner: Learner, seed: int) -> None:
        super().__init__(case, rank, clock, learner, seed)
        self.ended: frozenset[int] = frozenset()
        if self.worker < 0:
            self.predictor = predictor_of(case, seed)

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        return self._serve() if self.worker < 0 else self._work()

    def _work(self) -> Generator[Effect, Any, None]:
        """A worker's steps have the numbers of the server's: one that is late leaves some out."""
        push = np.empty(1 + len(self.x), np.float32)
        self._clock.step_begins(0, self.case.warmup > 0)
        while (step := int((pulled := (yield Receive(SERVER, PULL)).value)[0])) != ENDED:
            if step > 0:
                self._clock.step_begins(step, step < self.case.warmup)
            self.x[:] = pulled[1:]
            yield Gradient(step)
            push[0], push[1:] = step, self.g
            yield Charge(2 * self.x.nbytes)
            yield Send(SERVER, push, PUSH)
            self.done = step + 1
            self.keep_if_due()
        self._clock.steps_end()

    def _serve(self) -> Generator[Effect, Any, None]:
        case, workers = self.case, self.case.workers
        self.began, self.begun = np.zeros(workers), np.zeros(workers, int)
        """When each worker was given its parameters, in s, and in which step."""
        self.idle = frozenset(range(workers))
        for step in range(case.warmup + case.steps):
            if self.time_is_over():
                break
            self._clock.step_begins(step, step < case.warmup)
            self.step = step
            yield from self._step(workers if step < case.warmup else self._count())
            self.done = step + 1
            self.keep_if_due()
        self._clock.steps_end()
        self.step = ENDED
        yield from self._send_to(self.idle)
        while len(self.ended) < workers:
            late = (yield Receive(ANY, PUSH)).source - 1
            yield from self._send_to([late])

    def _count(self) -> int:
        """How many gradients the step waits for."""
        busy = self._clock.now() - self.began
        busy[sorted(self.idle)] = 0.0
        count = self.predictor.choose(Ahead(self.step, busy, self.begun))
        self.note("cut_off", count)
        return count

    def _step(self, count: int) -> Generator[Effect, Any, None]:
        """One update of the first `count` gradients."""
        started = self._clock.now()
        yield from self._send_to(self.idle)
        arrived_at = np.full(self.case.workers, np.nan)
        self.g[:] = 0
        for _ in range(count):
            message = yield from self._next()
            arrived_at[message.source - 1] = self._clock.now()
            self.g += message.value[1:]
            yield Charge(self.g.nbytes)
        ended = np.nanmax(arrived_at)
        self.g /= np.float32(count)
        yield Update()
        self.note("used_gradients", count)
        seen = Seen(arrived_at - self.began, arrived_at - started, ended - self.began)
        self.note("imputed", self.predictor.observe(seen))

    def _next(self) -> Generator[Effect, Any, Any]:
        """The next gradient of this step. Late workers that are heard before it join the step."""
        while True:
            message = yield Receive(ANY, PUSH)
            worker = message.source - 1
            self.idle |= {worker}
            if int(message.value[0]) == self.step:
                return message
            self.note("dropped_gradient", worker)
            yield from self._send_to([worker])

    def _send_to(self, workers: Iterable[int]) -> Generator[Effect, Any, None]:
        message, chosen = np.concatenate([[self.step], self.x], dtype=np.float32), sorted(workers)
        self.idle -= set(chosen)
        for worker in chosen:
            self.began[worker], self.begun[worker] = self._clock.now(), self.step
            yield Send(worker + 1, message, PULL)
        if self.step == ENDED:
            self.ended |= set(chosen)


def predictor_of(case: TrainCase, seed: int) -> Predictor:
    """The case's predictor."""
    name, workers, delays = case.options_of(CutOffOptions).predictor, case.workers, CaseDelays(case, seed)

    def delay(worker: int, step: int) -> float:
        return delays.of_step(worker + 1, step)

    if name == "elfving":
        return Elfving(workers)
    if name == "per_worker":
        return PerWorker(workers)
    if name == "oracle":
        return Oracle(delay)
    if name == "learned":
        from scaleproof.strategies.cut_off_learned import Learned, recorded_run  # torch is imported where it is needed

        return Learned(recorded_run(case, seed), seed, delay)
    return Static(workers, case.options_of(CutOffOptions).share if name == "static" else 1.0)


def check(case: TrainCase) -> None:
    """Raises FieldError for a server without workers, and options that do not go together."""
    check_replicas(case)
    if case.ranks < 2:
        raise FieldError("ranks", "cut_off has a server and workers: at least 2 ranks")
    options = case.options_of(CutOffOptions)
    if options.share != SHARE and options.predictor != "static":
        raise FieldError("strategy.share", f"is of predictor 'static', not {options.predictor!r}; leave it out")
    if options.predictor == "learned" and case.step_delay is None:
        message = "learns from a run under the case's `step_delay`: give one, or take 'elfving' or 'per_worker'"
        raise FieldError("strategy.predictor", f"'learned' {message}")


PLUGIN = StrategyPlugin(
    name="cut_off",
    summary="synchronous: a step takes the first gradients, as many as are predicted to pay",
    implementation=CutOff,
    options=CutOffOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="own", end="apart", evaluated="centre", dedicated_servers=lambda case: 1),
    tags=synchronous_tags("DP", "data", exchange="reduce", topology="single-PS"),
)
