"""Drives the program of a strategy's rank without processes and without a clock, on a quadratic whose steps can be
computed on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Collective, Effect, Gradient, Receive, Send, Update
from scaleproof.spec import registry
from scaleproof.strategies.replica import Replica
from scaleproof.transports.mailbox import Message
from scaleproof.workloads.data import Batch
from tests.short_form import train_case

BASE: dict[str, Any] = {"transport": "tcp", "workload": "dnn_digits", "data": "digits", "warmup": 0, "momentum": 0.0}


class Quadratic:
    """A learner of x^2 / 2 in each parameter, whose gradient is x."""

    def __init__(self, start: Sequence[float], learning_rate: float) -> None:
        self.parameters = np.array(start, np.float32)
        self.gradient = np.zeros_like(self.parameters)
        self._rate = np.float32(learning_rate)

    def own(self, piece: slice) -> None:
        """See Learner."""

    def update(self) -> None:
        """Plain SGD."""
        self.parameters -= self._rate * self.gradient

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Learner."""
        return 0.0

    def loss(self, batch: Batch) -> float:
        """See Learner."""
        return 0.0


class NoTime:
    """A clock that stands still."""

    succeeds: int | None = None
    lost: frozenset[int] = frozenset()

    def step_begins(self, step: int, warmup: bool) -> None:
        """See Clock."""

    def steps_end(self) -> None:
        """See Clock."""

    def now(self) -> float:
        """See Clock."""
        return 0.0

    def note(self, event: str, value: float) -> None:
        """See Clock."""

    def charge(self, nbytes: int) -> None:
        """See Clock."""

    def memory(self, nbytes: int) -> np.ndarray:
        """See Clock."""
        return np.zeros(nbytes, np.uint8)


def program(strategy: dict[str, Any], start: Sequence[float], rank: int = 0, **fields: Any) -> Replica:
    """The program of a rank that starts there."""
    case = train_case(**{**BASE, "strategy": strategy, **fields})
    made: Replica = registry.load("strategy", case.strategy)(
        case, rank, NoTime(), Quadratic(start, case.learning_rate), 0
    )
    return made


def driven(made: Replica, messages: Sequence[Message] = ()) -> list[Send]:
    """Runs it to its end, or until it waits for more messages than there are. `messages`: what its receives get, in
    their order. Sums over ranks are those of one rank. Returns what it has sent."""
    main, arriving, sent = made.main(), iter(messages), list[Send]()
    effect: Effect
    result: Any = None
    while True:
        try:
            effect = main.send(result)
        except StopIteration:
            return sent
        result = None
        if isinstance(effect, Gradient):
            made.g[:] = made.x
            result = float((made.x**2).sum() / 2)
        elif isinstance(effect, Update):
            made.learner.update()
        elif isinstance(effect, Collective):
            result = effect.value
        elif isinstance(effect, Send):
            sent.append(effect)
        elif isinstance(effect, Receive) and (result := next(arriving, None)) is None:
            return sent
