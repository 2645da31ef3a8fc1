"""Cut-off (teng2018): a synchronous step takes the gradients that come first, and does not wait for the others. How
many it takes is predicted from the times of earlier steps. A worker whose delay is not over when the next parameters
come stops and begins the next step with all others; a gradient that was under way then is dropped."""

from __future__ import annotations

from collections.abc import Generator
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
from scaleproof.strategies.cut_off_predictors import Elfving, Oracle, PerWorker, Predictor, Static
from scaleproof.strategies.replica import CaseDelays, Replica, check_replicas
from scaleproof.transports.mailbox import Message
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
        "the launch on a synchronous run under the same `step_delay` with a seed of its own; oracle: by the true "
        "delays of the case's laws. The warm-up waits for all.",
    )
    share: float = Field(SHARE, gt=0, le=1, description="Of workers, for predictor static.")


class CutOff(Replica):
    """Rank 0 serves. Messages begin with the number of their step, the same on all ranks."""

    def __init__(self, case: TrainCase, rank: int, clock: Clock, learner: Learner, seed: int) -> None:
        super().__init__(case, rank, clock, learner, seed)
        self.delays = CaseDelays(case, seed)
        if self.worker < 0:
            self.predictor = predictor_of(case, seed)

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        return self._serve() if self.worker < 0 else self._work()

    def _work(self) -> Generator[Effect, Any, None]:
        push = np.empty(1 + len(self.x), np.float32)
        self._clock.step_begins(0, self.case.warmup > 0)
        pulled = (yield Receive(SERVER, PULL)).value
        while (step := int(pulled[0])) != ENDED:
            if step > 0:
                self._clock.step_begins(step, step < self.case.warmup)
            self.x[:] = pulled[1:]
            yield Gradient(step, delayed=False)
            following = yield from self._delay(step)
            if following is None:
                push[0], push[1:] = step, self.g
                yield Charge(2 * self.x.nbytes)
                yield Send(SERVER, push, PUSH)
                following = yield Receive(SERVER, PULL)
            else:
                self.note("dropped_gradient", self.worker)
            pulled = following.value
            self.done = step + 1
            self.keep_if_due()
        self._clock.steps_end()
        yield Send(SERVER, np.array([ENDED], np.float32), PUSH)

    def _delay(self, step: int) -> Generator[Effect, Any, Message | None]:
        """Waits for the delay of the case's law. The result is the next parameters, if they come before it is over."""
        seconds = self.delays.of_step(self.rank, step)
        if not seconds:
            return None
        message: Message | None = yield Receive(SERVER, PULL, within=seconds)
        return message

    def _serve(self) -> Generator[Effect, Any, None]:
        case, left = self.case, self.case.workers
        for step in range(case.warmup + case.steps):
            if self.time_is_over():
                break
            self._clock.step_begins(step, step < case.warmup)
            yield from self._step(step)
            self.done = step + 1
            self.keep_if_due()
        self._clock.steps_end()
        yield from self._send_to_all(ENDED)
        while left:
            if int((yield Receive(ANY, PUSH)).value[0]) == ENDED:
                left -= 1

    def _count(self, step: int) -> int:
        """How many gradients the step waits for."""
        if step < self.case.warmup:
            return self.case.workers
        chosen = self.predictor.choose(step)
        self.note("cut_off", chosen)
        return chosen

    def _step(self, step: int) -> Generator[Effect, Any, None]:
        """One update of the first gradients. The prediction is made while workers compute."""
        began = yield from self._send_to_all(step)
        times, arrived, wanted = np.full(self.case.workers, np.nan), 0, self._count(step)
        self.g[:] = 0
        while arrived < wanted:
            message = yield Receive(ANY, PUSH)
            worker, now = message.source - 1, self._clock.now()
            if int(message.value[0]) != step:
                self.note("dropped_gradient", worker)
                continue
            times[worker] = now - began[worker]
            self.g += message.value[1:]
            arrived += 1
            yield Charge(self.g.nbytes)
        self.g /= np.float32(arrived)
        yield Update()
        self.note("used_gradients", arrived)
        self.note("imputed", self.predictor.observe(times, now - began))

    def _send_to_all(self, step: int) -> Generator[Effect, Any, np.ndarray]:
        """Parameters for a step; the result is when each worker was given them, in s."""
        message, began = np.concatenate([[step], self.x], dtype=np.float32), np.zeros(self.case.workers)
        for worker in range(self.case.workers):
            began[worker] = self._clock.now()
            yield Send(worker + 1, message, PULL)
        return began


def predictor_of(case: TrainCase, seed: int) -> Predictor:
    """The case's predictor."""
    name, workers = case.options_of(CutOffOptions).predictor, case.workers
    law = CaseDelays(case, seed)

    def delays(step: int) -> np.ndarray:
        return np.array([law.of_step(rank, step) for rank in range(1, case.ranks)])

    if name == "elfving":
        return Elfving(workers)
    if name == "per_worker":
        return PerWorker(workers)
    if name == "oracle":
        return Oracle(delays)
    if name == "learned":  # torch is imported where it is needed
        from scaleproof.strategies.cut_off_learned import Learned, trained

        return Learned(trained(str(case.step_delay), case.ranks), seed, delays)
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
