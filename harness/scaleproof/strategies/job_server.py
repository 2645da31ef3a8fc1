"""A job server for control, and nothing else (MiMatrix, Chen et al. 2018; our own reading of its abstract): once an
epoch it starts the workers and hears that they are done. Workers reduce by themselves: each owns a part of the
gradient, into which its peers write, and writes the mean into theirs. All addresses are known from the start."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import (
    ANY,
    AwaitFlag,
    Charge,
    Effect,
    Flag,
    Gradient,
    Put,
    Receive,
    Send,
    Update,
)
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.replica import Replica, check_replicas, parts_of

START, DONE, GRADIENT, MEAN, READY = range(5)
"""Tags of messages."""
JOB_SERVER = 0


class JobServerOptions(Options):
    """Options of the job server."""

    epoch_steps: int = Field(10, ge=1, description="Steps of an epoch: once in so many the job server is heard.")
    gradients: Literal["between_workers", "through_server"] = Field(
        "between_workers",
        description="through_server: the job server sums and gives back all gradients, a design that must not scale.",
    )
    handshakes: Literal["none", "each_step"] = Field(
        "none", description="each_step: workers ask each peer before they write, as if addresses were not known."
    )


class JobServer(Replica):
    """Rank 0 is the job server. Worker w owns part w of the gradient: of its region `gathered`, row v is what worker v
    has written."""

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram."""
        self.parts = parts_of(len(self.x), self.case.workers)
        self.mean = self.memory(len(self.x))
        if self.worker < 0:
            return {"mean": self.mean}
        self.part = self.parts[self.worker]
        self.size = self.part.stop - self.part.start
        self.gathered = self.memory(self.case.workers * self.size)
        return {"gathered": self.gathered, "mean": self.mean}

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        self.options = self.case.options_of(JobServerOptions)
        return self._control() if self.worker < 0 else self._work()

    @property
    def peers(self) -> list[int]:
        """Other workers."""
        return [worker for worker in range(self.case.workers) if worker != self.worker]

    def _control(self) -> Generator[Effect, Any, None]:
        steps = self.case.warmup + self.case.steps
        for first in range(0, steps, self.options.epoch_steps):
            for worker in range(1, self.world_size):
                yield Send(worker, np.empty(0, np.float32), START, control=True)
            if self.options.gradients == "through_server":
                for _ in range(min(self.options.epoch_steps, steps - first)):
                    yield from self._sum()
            for _ in range(self.case.workers):
                yield Receive(ANY, DONE)

    def _sum(self) -> Generator[Effect, Any, None]:
        """The design that must not scale: all gradients pass through the job server."""
        total = np.zeros_like(self.x)
        for worker in range(1, self.world_size):
            total += (yield Receive(worker, GRADIENT)).value
            yield Charge(total.nbytes)
        total /= np.float32(self.case.workers)
        for worker in range(1, self.world_size):
            yield Send(worker, total, MEAN)

    def _work(self) -> Generator[Effect, Any, None]:
        last = self.case.warmup + self.case.steps - 1
        for step in self.steps():
            if step % self.options.epoch_steps == 0:
                yield Receive(JOB_SERVER, START)
            yield Gradient(step)
            if self.options.gradients == "through_server":
                yield Send(JOB_SERVER, self.g, GRADIENT)
                self.g[:] = (yield Receive(JOB_SERVER, MEAN)).value
            else:
                yield from self._all_reduce(step)
            yield Update()
            if step == last or (step + 1) % self.options.epoch_steps == 0:
                yield Send(JOB_SERVER, np.empty(0, np.float32), DONE, control=True)

    def _all_reduce(self, step: int) -> Generator[Effect, Any, None]:
        """No peer writes again before it has read: it waits for the means of all owners, this one's too."""
        if self.options.handshakes == "each_step":
            yield from self._shake_hands()
        for peer in self.peers:
            part = self.parts[peer]
            yield Put(peer + 1, self.g[part], "gathered", self.worker * (part.stop - part.start))
            yield Flag(peer + 1, "gathered")
        yield AwaitFlag("gathered", len(self.peers) * (step + 1))
        own = self.mean[self.part]
        own[:] = self.g[self.part]
        for peer in self.peers:
            own += self.gathered[peer * self.size : (peer + 1) * self.size]
        own /= np.float32(self.case.workers)
        self.note("reduced", len(self.peers) * self.size)
        yield Charge(self.gathered.nbytes)
        for peer in self.peers:
            yield Put(peer + 1, own, "mean", self.part.start)
            yield Flag(peer + 1, "mean")
        yield AwaitFlag("mean", len(self.peers) * (step + 1))
        self.g[:] = self.mean
        yield Charge(self.g.nbytes)

    def _shake_hands(self) -> Generator[Effect, Any, None]:
        for peer in self.peers:
            yield Send(peer + 1, np.empty(0, np.float32), READY, control=True)
        for peer in self.peers:
            yield Receive(peer + 1, READY)


def check(case: TrainCase) -> None:
    """Raises FieldError for a job server without workers."""
    check_replicas(case)
    if case.ranks < 2:
        raise FieldError("ranks", "a job server needs a worker: at least 2 ranks")
    if case.seconds is not None:
        raise FieldError("seconds", "epochs have a number of steps; leave it out")


PLUGIN = StrategyPlugin(
    name="job_server",
    summary="synchronous: workers reduce by one-sided writes, a job server is heard once an epoch",
    implementation=JobServer,
    options=JobServerOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="lockstep", end="equal", evaluated="first", dedicated_servers=lambda case: 1),
    tags=synchronous_tags("DP", "data", exchange="scatter-reduce", topology="distributed-PS(k=n)"),
)
