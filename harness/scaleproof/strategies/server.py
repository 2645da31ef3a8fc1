"""Parameter servers whose workers go at their own pace: a worker pushes a gradient, and takes the parameters that are
there then. Servers train nothing themselves, and each holds a part of the parameters.

Asynchronous (Dean et al. 2012), stale-synchronous with a bound (Ho et al. 2013), or synchronous with backup workers
(Chen et al. 2016)."""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import ANY, Charge, Effect, Gradient, Receive, Send, Update
from scaleproof.rank_programs.rank_program import GONE
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.faults import Name
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags, server_tags
from scaleproof.strategies.replica import SERVERS, Replica, check_servers, dedicated_servers, parts_of
from scaleproof.strategies.update_option import UpdateOptions, UpdateOrder
from scaleproof.transports.mailbox import Lost

PUSH, PULL = 0, 1
HEAD = 2
"""Elements before the gradient in a push: the worker's step, and the number of updates that its parameters had."""
ENDED, JOINED = -1.0, -2.0
"""The step in the last push of a worker, and in the first one of a successor, which asks for parameters."""
EVERY = sys.maxsize
"""Steps of a worker that takes no more."""
BORNE: frozenset[Name] = frozenset({"kill", "replace"})
"""Faults of workers."""


class ServerOptions(UpdateOptions):
    """Options of servers."""

    dedicated_servers: int = Field(1, ge=1, description=SERVERS)
    bound: int | None = Field(
        None,
        ge=0,
        description="Stale-synchronous: a worker gets its parameters only when no other is more than so many steps "
        "behind it; null: at once.",
    )
    update: UpdateOrder = Field(
        "asynchronous",
        description="asynchronous: every gradient is an update of its own; synchronous: an update takes the mean of "
        "one gradient of each worker.",
    )
    backup: int = Field(
        0, ge=0, description="With `update: synchronous`: gradients of the last so many workers of a step are dropped."
    )


@dataclass(slots=True)
class Progress:
    """What a server knows of its workers."""

    steps: list[int]
    """Steps that each has pushed; EVERY where it has ended."""
    waiting: dict[int, int] = field(default_factory=dict)
    """Workers that wait for parameters: the step that each has pushed last."""
    ended: set[int] = field(default_factory=set)
    away: set[int] = field(default_factory=set)
    """Workers that were killed and will have a successor."""
    slowest: int = 0
    """Steps of the slowest, when parameters were last sent."""

    @property
    def gone(self) -> set[int]:
        """Workers that push nothing now."""
        return self.ended | self.away


class Server(Replica):
    """Ranks below `servers` serve; the others work."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        self.options = self.case.options_of(ServerOptions)
        self.synchronous = self.options.update == "synchronous"
        self.parts = parts_of(len(self.x), self.servers)
        self.versions = [0.0] * self.servers
        """Updates that the parameters of this worker had, by server."""
        self.lead = 0
        """The most steps that a worker was ahead of the slowest, when its gradient came to this server."""
        is_barrier = self.synchronous or self.options.bound is not None
        self.arrived: dict[int, float] | None = {} if is_barrier and self.rank == 0 else None
        """When the gradient of each worker that waits came to the first server, where workers wait for each other."""
        return self._serve() if self.worker < 0 else self._work()

    def _work(self) -> Generator[Effect, Any, None]:
        yield from self.start_successor()
        for step in self.steps():
            yield Gradient(step)
            yield from self.push_and_pull(step)
            yield from self.meet()
        self.finished = GONE
        for server in range(self.servers):
            yield Send(server, np.array([ENDED, 0], np.float32), PUSH)

    def start_successor(self) -> Generator[Effect, Any, None]:
        """A successor begins with the servers' parameters, in a synchronous step where the servers are."""
        if not self.is_successor:
            return
        for server in range(self.servers):
            yield Send(server, np.array([JOINED, self.first_step], np.float32), PUSH)
        yield from self._pull()
        if self.synchronous:
            self.first_step = max(self.first_step, int(min(self.versions)))
        self.finished = float(self.first_step)

    def meet(self) -> Generator[Effect, Any, None]:
        """What a worker waits for between its steps, beside the servers."""
        yield from ()

    def push_and_pull(self, step: int) -> Generator[Effect, Any, None]:
        """The gradient goes to all servers, and their parameters come back."""
        for server, part in enumerate(self.parts):
            yield Send(server, np.concatenate([[step, self.versions[server]], self.g[part]], dtype=np.float32), PUSH)
        self.finished = step + 1.0
        self.note("finished", self.finished)
        yield Charge(self.g.nbytes)
        yield from self._pull()

    def _pull(self) -> Generator[Effect, Any, None]:
        for server, part in enumerate(self.parts):
            pulled = (yield Receive(server, PULL)).value
            self.versions[server] = float(pulled[0])
            self.x[part] = pulled[1:]
        yield Charge(self.x.nbytes)

    def _serve(self) -> Generator[Effect, Any, None]:
        self.part = self.parts[self.rank]
        self.learner.own(self.part)
        self.workers = self.case.workers
        self.progress = Progress([0] * self.workers)
        self.updates, self.summed = 0, 0
        self.answer = np.empty(1 + self.part.stop - self.part.start, np.float32)
        self.g[:] = 0
        while len(self.progress.ended) < self.workers:
            message = yield Receive(ANY, PUSH)
            worker = message.source - self.servers
            if isinstance(message, Lost):
                yield from self._lose(worker)
            elif message.value[0] == ENDED:
                self.progress.ended.add(worker)
                self.progress.steps[worker] = EVERY
            elif message.value[0] == JOINED:
                self._join(worker, int(message.value[1]))
            else:
                yield from self._take(worker, int(message.value[0]), message.value)
            yield from self._answer_all(worker)
        self.done = self.updates if self.synchronous else self.updates // self.workers

    def _lose(self, worker: int) -> Generator[Effect, Any, None]:
        """Nobody waits for a worker that is gone."""
        gone = self.progress.away if worker + self.servers in self.faults.returning else self.progress.ended
        gone.add(worker)
        self.progress.steps[worker] = EVERY
        self.progress.waiting.pop(worker, None)
        if self.synchronous and self.summed:
            yield from self._step_if_complete(float(self.updates))

    def _join(self, worker: int, first_step: int) -> None:
        """The successor of a worker waits for its first parameters."""
        self.progress.away.discard(worker)
        self.progress.steps[worker], self.progress.waiting[worker] = first_step, first_step - 1

    def _take(self, worker: int, step: int, push: np.ndarray) -> Generator[Effect, Any, None]:
        """A gradient has arrived."""
        self.progress.steps[worker] = step + 1
        self.progress.waiting[worker] = step
        if self.arrived is not None:
            self.arrived[worker] = self._clock.now()
        if self.options.bound is not None:
            self.lead = max(self.lead, step + 1 - min(self.progress.steps))
        if not self.synchronous:
            self.g[self.part] = push[HEAD:]
            yield from self._step(float(push[1]))
            return
        if step < self.updates:
            self.note("dropped_gradient", worker)
            return
        self.g[self.part] += push[HEAD:]
        self.summed += 1
        yield Charge(push.nbytes)
        yield from self._step_if_complete(float(push[1]))

    def _step_if_complete(self, version: float) -> Generator[Effect, Any, None]:
        needed = max(1, self.workers - self.options.backup - len(self.progress.gone))
        if self.summed >= needed:
            self.note("used_gradients", self.summed)
            self.g[self.part] /= np.float32(self.summed)
            yield from self._step(version)
            self.g[self.part], self.summed = 0, 0

    def _step(self, version: float) -> Generator[Effect, Any, None]:
        """Updates the parameters with the gradient."""
        yield Update()
        self.note("staleness", self.updates - version)
        self.updates += 1
        self.done = self.updates // self.workers if not self.synchronous else self.updates
        self.keep_if_due()

    def bound_kept(self) -> tuple[bool, str] | None:
        """See Replica. A worker goes on while it is no more than `bound` steps ahead, and is one further when it comes
        back. A successor may begin far behind the others: nothing is said where workers die."""
        if self.worker >= 0 or self.options.bound is None or self.case.faults:
            return None
        most = self.options.bound + 1
        return self.lead <= most, f"a worker was {self.lead} steps ahead of the slowest at most; {most} are allowed"

    def _answer_all(self, latest: int) -> Generator[Effect, Any, None]:
        """Parameters for all workers that need wait no longer: those that waited before only where all have moved on,
        and the one whose push came last."""
        waiting = self.progress.waiting
        for worker in sorted(waiting) if self.synchronous or self._slowest_moved() else [latest]:
            if worker in waiting and self._may_go(worker):
                del waiting[worker]
                if self.arrived is not None and worker in self.arrived:
                    self.note("barrier_s", self._clock.now() - self.arrived.pop(worker))
                self.answer[0], self.answer[1:] = self.updates, self.x[self.part]
                yield Charge(self.answer.nbytes)
                yield Send(worker + self.servers, self.answer, PULL)

    def _slowest_moved(self) -> bool:
        """Whether the slowest worker is further than when parameters were last sent."""
        if self.options.bound is None:
            return False
        before, self.progress.slowest = self.progress.slowest, min(self.progress.steps)
        return self.progress.slowest > before

    def _may_go(self, worker: int) -> bool:
        progress = self.progress
        if self.synchronous:
            return progress.waiting[worker] < self.updates
        return self.options.bound is None or progress.steps[worker] - progress.slowest <= self.options.bound


def check(case: TrainCase) -> None:
    """Raises FieldError for servers without workers, and options that do not go together."""
    check_servers(case)
    options = case.options_of(ServerOptions)
    if options.backup and options.update == "asynchronous":
        raise FieldError("strategy.backup", "drops late gradients of a synchronous step: set `update: synchronous`")
    if options.backup >= case.ranks - options.dedicated_servers:
        workers = case.ranks - options.dedicated_servers
        raise FieldError("strategy.backup", f"{options.backup} backup workers of {workers} leave no gradient")
    if options.update == "synchronous" and options.bound is not None:
        raise FieldError("strategy.bound", "is for gradients that are applied one by one: leave out `update`")


def tags(case: TrainCase) -> dict[str, str]:
    """Its place on the axes of the taxonomy."""
    options = case.options_of(ServerOptions)
    if options.update == "synchronous":
        return server_tags(case)
    scheduling = "asynchronous" if options.bound is None else "bounded-asynchronous"
    return asynchronous_tags("centralized", scheduling)(case)


PLUGIN = StrategyPlugin(
    name="server",
    summary="parameter servers of workers at their own pace: asynchronous, stale-synchronous, or with backup workers",
    implementation=Server,
    options=ServerOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="own",
        end="apart",
        bounded=lambda case: case.options_of(ServerOptions).bound is not None,
        evaluated="centre",
        dedicated_servers=dedicated_servers,
        bears=BORNE,
    ),
    tags=tags,
)
