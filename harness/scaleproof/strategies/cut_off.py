"""Cut-off (teng2018): a synchronous step takes the gradients that come first, and does not wait for the others. How
many it takes is predicted from the times of earlier steps. A gradient that comes too late is dropped, and its worker
goes on with the parameters of that moment."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import ANY, Charge, Effect, Gradient, Receive, Send, Update
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.cut_off_predictors import Elfving, Oracle, PerWorker, Predictor, Static
from scaleproof.strategies.replica import CaseDelays, Replica, check_replicas

PUSH, PULL = 0, 1
ENDED = -1.0
MANY = 1 << 40
SERVER = 0


class CutOffOptions(Options):
    """Options of cut-off."""

    predictor: Literal["all", "static", "elfving", "per_worker", "oracle"] = Field(
        "elfving",
        description="How many gradients a step waits for. all: those of all workers; static: a `share` of them; "
        "elfving: by order statistics of the last 20 steps, as if times were independent and normal; per_worker: by a "
        "running mean of each worker's times; oracle: by the true delays of the case's laws.",
    )
    share: float = Field(0.96, gt=0, le=1, description="Of workers, for predictor static.")


class CutOff(Replica):
    """Rank 0 serves."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        return self._serve() if self.worker < 0 else self._work()

    def _work(self) -> Generator[Effect, Any, None]:
        push = np.empty(1 + len(self.x), np.float32)
        for step in self.steps(MANY):
            pulled = (yield Receive(SERVER, PULL)).value
            if pulled[0] == ENDED:
                break
            self.x[:] = pulled[1:]
            yield Gradient(step)
            push[0], push[1:] = pulled[0], self.g
            yield Charge(2 * self.x.nbytes)
            yield Send(SERVER, push, PUSH)

    def _serve(self) -> Generator[Effect, Any, None]:
        workers, steps = self.case.workers, self.case.warmup + self.case.steps
        self.given = [0] * workers
        """Steps that each worker has been given."""
        self.predictor = self._predictor(workers)
        self.began, self.iteration = np.zeros(workers), 0
        self.idle = set(range(workers))
        for step in range(steps):
            self._clock.step_begins(step, step < self.case.warmup)
            self.iteration = step
            yield from self._step(workers if step < self.case.warmup else self._count(step))
            self.done = step + 1
            self.keep_if_due()
        self._clock.steps_end()
        self.iteration = int(ENDED)
        yield from self._send_to_idle()
        while len(self.ended) < workers:
            worker = (yield Receive(ANY, PUSH)).source - 1
            self.idle.add(worker)
            yield from self._send_to_idle()

    ended: frozenset[int] = frozenset()

    def _predictor(self, workers: int) -> Predictor:
        """The case's predictor."""
        options = self.case.options_of(CutOffOptions)
        if options.predictor == "elfving":
            return Elfving(workers)
        if options.predictor == "per_worker":
            return PerWorker(workers)
        if options.predictor == "oracle":
            delays = CaseDelays(self.case, self.seed)
            return Oracle(
                workers,
                lambda worker: delays.of_step(worker + 1, self.given[worker]),
                lambda worker: delays.of_step(worker + 1, self.given[worker] - 1),
            )
        return Static(workers, options.share if options.predictor == "static" else 1.0)

    def _count(self, step: int) -> int:
        """How many gradients the step waits for."""
        count = self.predictor.choose()
        self.note("cut_off", count)
        return count

    def _send_to_idle(self) -> Generator[Effect, Any, None]:
        message = np.concatenate([[self.iteration], self.x], dtype=np.float32)
        for worker in sorted(self.idle):
            self.began[worker] = self._clock.now()
            self.given[worker] += 1
            yield Send(worker + 1, message, PULL)
        if self.iteration == ENDED:
            self.ended |= self.idle
        self.idle = set()

    def _step(self, count: int) -> Generator[Effect, Any, None]:
        """One update of the first `count` gradients."""
        yield from self._send_to_idle()
        times, arrived = np.full(self.case.workers, np.nan), 0
        self.g[:] = 0
        while arrived < count:
            message = yield Receive(ANY, PUSH)
            worker, current = message.source - 1, int(message.value[0]) == self.iteration
            self.idle.add(worker)
            if not current:
                self.note("dropped_gradient", worker)
                yield from self._send_to_idle_worker(worker)
                continue
            times[worker] = self._clock.now() - self.began[worker]
            self.g += message.value[1:]
            arrived += 1
            yield Charge(self.g.nbytes)
        self.g /= np.float32(arrived)
        yield Update()
        self.note("used_gradients", arrived)
        self.note("imputed", self.predictor.observe(times, float(np.nanmax(times))))

    def _send_to_idle_worker(self, worker: int) -> Generator[Effect, Any, None]:
        """A late worker joins the step that is under way."""
        others, self.idle = self.idle - {worker}, {worker}
        yield from self._send_to_idle()
        self.idle = others


PLUGIN = StrategyPlugin(
    name="cut_off",
    summary="synchronous: a step takes the first gradients, as many as are predicted to pay",
    implementation=CutOff,
    options=CutOffOptions,
    check=check_replicas,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="own", end="apart", evaluated="centre", dedicated_servers=lambda case: 1),
    tags=asynchronous_tags("centralized", "synchronous", "single-PS"),
)
