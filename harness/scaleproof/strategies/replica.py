"""A strategy that is a program of each rank (rank_programs/): every rank trains a replica at its own pace, and decides
when to exchange what with whom. The same program runs in processes and in virtual time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Effect
from scaleproof.rank_programs.rank_program import Clock, RankProgram
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.delay_law import delays_of
from scaleproof.spec.errors import FieldError
from scaleproof.spec.faults import faults_of
from scaleproof.workloads.learner import Learner

SERVERS = "Ranks that only serve, the first ones; each holds an equal part of the parameters."
"""Of an option."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A replica's parameters at the end of a step: kept during the run, evaluated after it. `number`: of the
    evaluation; `moment`: true time since all ranks began, s."""

    number: int
    step: int
    moment: float
    values: np.ndarray


class CaseDelays:
    """Delays of a case's ranks, the same on every clock."""

    def __init__(self, case: TrainCase, seed: int) -> None:
        self._of_steps, self._of_messages = delays_of(case.step_delay), delays_of(case.message_delay)
        self._ranks, self._seed = case.ranks, seed
        self._sent = [0] * case.ranks

    def of_step(self, rank: int, step: int) -> float:
        """How long a rank waits in a step, s of true time."""
        return self._of_steps.drawn(rank, self._ranks, self._seed, step)

    def of_message(self, rank: int) -> float:
        """How long a rank waits before its next message, s of true time."""
        self._sent[rank] += 1
        return self._of_messages.drawn(rank, self._ranks, self._seed + 1, self._sent[rank])

    def restart(self, rank: int) -> None:
        """A rank has a successor, which has sent nothing yet."""
        self._sent[rank] = 0


class Replica(RankProgram):
    """One rank. `x` and `g`: its parameters and their gradient, float32 (n,); `worker`: its number among the ranks that
    train, below 0 for a server."""

    case: TrainCase  # type: ignore[assignment]

    def __init__(self, case: TrainCase, rank: int, clock: Clock, learner: Learner, seed: int) -> None:
        super().__init__(case, rank, clock)
        self.learner, self.x, self.g = learner, learner.parameters, learner.gradient
        self.seed, self.servers = seed, case.ranks - case.workers
        self.worker = rank - self.servers
        self.is_successor, self.first_step = clock.succeeds is not None, clock.succeeds or 0
        self.random = np.random.default_rng([seed, 8, rank, 1] if self.is_successor else [seed, 8, rank])
        self.faults = faults_of(case.faults)
        self.snapshots: list[Snapshot] = []
        self.missed = 0
        """Evaluations before this rank took the place of another."""
        self.done = self.first_step
        """Steps that this rank, and the one before it, have finished, warm-up included."""

    @abstractmethod
    def main(self) -> Generator[Effect, Any, None]:
        """The program of the rank."""

    def steps(self, count: int | None = None) -> Iterator[int]:
        """See RankProgram; ends when the case's seconds are over."""
        if self.is_successor:
            self.done, self.missed = self.first_step, self._missed()
        for step in super().steps(count):
            yield step
            self.done = step + 1
            self.keep_if_due()

    @property
    def timed_steps(self) -> int:
        """See RankProgram."""
        return self.case.steps

    def random_peer(self) -> int:
        """One of the other ranks, but none that is known to be gone; this rank itself where no other is left."""
        other = int(self.random.integers(self.world_size - 1))
        peer = other + (other >= self.rank)
        if peer not in self._clock.lost:
            return peer
        left = [rank for rank in range(self.world_size) if rank != self.rank and rank not in self._clock.lost]
        return int(self.random.choice(left)) if left else self.rank

    def time_is_over(self) -> bool:
        """See RankProgram."""
        return self.case.seconds is not None and self._clock.now() >= self.case.seconds

    def note(self, event: str, value: float) -> None:
        """Records a value at this moment."""
        self._clock.note(event, value)

    def bound_kept(self) -> tuple[bool, str] | None:
        """Where the strategy promises a bound: whether this rank saw it kept, and what it saw; None: it saw nothing of
        it."""
        return None

    def end(self) -> None:
        """All ranks have ended, and all that they have sent has arrived: takes what this one has not taken yet."""

    def keep_if_due(self) -> None:
        """Keeps a copy of the parameters where an evaluation is due."""
        case, kept = self.case, self.missed + len(self.snapshots)
        if case.evaluate_s is not None:
            due = self._clock.now() >= (kept + 1) * case.evaluate_s
        else:
            due = case.evaluate_every > 0 and self.done >= (kept + 1) * case.evaluate_every
        if due:
            self.keep()

    def _missed(self) -> int:
        """Evaluations that were due before the first step of a successor."""
        if self.case.evaluate_s is not None:
            return int(self._clock.now() // self.case.evaluate_s)
        return self.first_step // self.case.evaluate_every if self.case.evaluate_every else 0

    def keep(self) -> None:
        """Keeps a copy of the parameters."""
        number = self.missed + len(self.snapshots)
        self.snapshots.append(Snapshot(number, self.done - 1, self._clock.now(), self.x.copy()))


def parts_of(count: int, servers: int) -> list[slice]:
    """Equal parts of the parameters, one for each server."""
    edges = np.linspace(0, count, servers + 1).astype(int).tolist()
    return [slice(low, high) for low, high in pairwise(edges)]


def check_replicas(case: TrainCase) -> None:
    """Raises FieldError for what no strategy of this kind can do."""
    transport = case.plugin("transport")
    if transport.mailbox is None:
        have = ", ".join(registry.with_trait("transport", "mailbox"))
        why = f"strategy {case.strategy!r} needs a mailbox ({have}), not {case.transport!r}"
        raise FieldError("transport", f"{why}: {transport.no_mailbox}" if transport.no_mailbox else why)
    if case.plugin("framework").own_optimiser_memory:
        why = f"{case.framework!r} keeps parameters in memory of its own, where strategy {case.strategy!r} cannot write"
        raise FieldError("framework", f"{why}; use torch")


def check_peers(case: TrainCase) -> None:
    """Raises FieldError for a rank without a peer, and what no strategy of this kind can do."""
    check_replicas(case)
    if case.ranks < 2:
        raise FieldError("ranks", f"strategy {case.strategy!r} needs a peer: at least 2 ranks")


def check_servers(case: TrainCase) -> None:
    """Raises FieldError for servers without workers, and what no strategy of this kind can do."""
    check_replicas(case)
    servers = case.value("strategy.dedicated_servers")
    if servers >= case.ranks:
        message = f"{servers} servers of {case.ranks} ranks leave no worker"
        raise FieldError("strategy.dedicated_servers", message)


def dedicated_servers(case: TrainCase) -> int:
    """Ranks that only serve."""
    servers: int = case.value("strategy.dedicated_servers")
    return servers
