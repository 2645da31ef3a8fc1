"""A job server for control, and nothing else (MiMatrix, Chen et al. 2018; our own reading of its abstract): once an
epoch it starts the workers and hears that they are done. Workers reduce by themselves: each owns a part of the
gradient, into which its peers write, and writes the mean into theirs. All addresses are known from the start.

Two broken designs stand beside it as controls: the job server sums all gradients itself, or workers ask each other
where to write."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import ANY, AwaitFlag, Call, Charge, Effect, Gradient, Put, Receive, Send, Update
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.replica import Replica, check_replicas, parts_of
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.learner import sizes_of

START, DONE, GRADIENT, MEAN = range(4)
"""Tags of messages."""
JOB_SERVER = 0
ADDRESS = "address"
"""Name of the call that a worker without addresses makes."""
NOTHING = np.empty(0, np.float32)


class JobServerOptions(Options):
    """Options of the job server."""

    epoch_steps: int = Field(10, ge=1, description="Steps of an epoch: once in so many the job server is heard.")
    gradients: Literal["between_workers", "through_server"] = Field(
        "between_workers",
        description="through_server: the job server sums and gives back all gradients, a design that must not scale.",
    )
    handshakes: Literal["none", "each_tensor"] = Field(
        "none",
        description="each_tensor: in each step a worker asks each peer for the place of each tensor before it writes, "
        "as if no memory had been registered before.",
    )


class JobServer(Replica):
    """Rank 0 is the job server. Worker w owns part w of the gradient: of its region `gathered`, row v is what worker v
    has written."""

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram."""
        self.parts = parts_of(len(self.x), self.case.workers)
        if self.worker < 0:
            return {}
        self.part = self.parts[self.worker]
        self.size = self.part.stop - self.part.start
        self.gathered, self.mean = self.memory(self.case.workers * self.size), self.memory(len(self.x))
        return {"gathered": self.gathered, "mean": self.mean}

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        self.options = self.case.options_of(JobServerOptions)
        return self._control() if self.worker < 0 else self._work()

    @property
    def peers(self) -> list[int]:
        """Other workers, the next one first: they do not all write to the same one at a time."""
        workers = self.case.workers
        return [(self.worker + distance) % workers for distance in range(1, workers)]

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """See RankProgram."""
        return NOTHING if name == ADDRESS else super().serve(source, name, value)

    def _control(self) -> Generator[Effect, Any, None]:
        steps = self.case.warmup + self.case.steps
        for first in range(0, steps, self.options.epoch_steps):
            for worker in range(1, self.world_size):
                yield Send(worker, NOTHING, START, control=True)
            if self.options.gradients == "through_server":
                for _ in range(min(self.options.epoch_steps, steps - first)):
                    yield from self._sum()
            for _ in range(self.case.workers):
                yield Receive(ANY, DONE)
        self.done = steps

    def _sum(self) -> Generator[Effect, Any, None]:
        """The design that must not scale: all gradients pass through the job server."""
        total = np.zeros_like(self.x)
        for worker in range(1, self.world_size):
            total += (yield Receive(worker, GRADIENT)).value
            yield Charge(total.nbytes)
        total /= np.float32(self.case.workers)
        self.note("reduced", self.case.workers * len(total))
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
                yield Send(JOB_SERVER, NOTHING, DONE, control=True)

    def _all_reduce(self, step: int) -> Generator[Effect, Any, None]:
        """No peer writes again before it has read: it waits for the means of all owners, this one's too."""
        if self.options.handshakes == "each_tensor":
            yield from self._ask_for_places()
        for peer in self.peers:
            part = self.parts[peer]
            start = self.worker * (part.stop - part.start)
            yield Put(peer + 1, self.g[part], "gathered", start, flag="gathered")
        yield AwaitFlag("gathered", (self.case.workers - 1) * (step + 1))
        own = self.mean[self.part]
        own[:] = self.g[self.part]
        for peer in sorted(self.peers):
            own += self.gathered[peer * self.size : (peer + 1) * self.size]
        own /= np.float32(self.case.workers)
        self.note("reduced", (self.case.workers - 1) * self.size)
        yield Charge(self.gathered.nbytes)
        for peer in self.peers:
            yield Put(peer + 1, own, "mean", self.part.start, flag="mean")
        yield AwaitFlag("mean", (self.case.workers - 1) * (step + 1))
        self.g[:] = self.mean
        yield Charge(self.g.nbytes)

    def _ask_for_places(self) -> Generator[Effect, Any, None]:
        for _ in sizes_of(network_of(self.case)):
            for peer in self.peers:
                yield Call(peer + 1, NOTHING, ADDRESS, control=True)


def check(case: TrainCase) -> None:
    """Raises FieldError for a job server without workers, and options that do not go together."""
    check_replicas(case)
    options = case.options_of(JobServerOptions)
    if case.ranks < 2:
        raise FieldError("ranks", "a job server needs a worker: at least 2 ranks")
    if case.seconds is not None:
        raise FieldError("seconds", "epochs have a number of steps; leave it out")
    if options.gradients == "through_server" and options.handshakes != "none":
        message = "workers that send to the job server write into no peer's memory; leave one of them out"
        raise FieldError("strategy.handshakes", message)


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
