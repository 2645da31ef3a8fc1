"""A rank's part of a case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from suite_programs.blocks import block
from suite_programs.data_sets import Problem
from suite_programs.messages import Messages
from suite_programs.solver import Machine


@dataclass(frozen=True, slots=True)
class Task:
    """`most`: iterations of a solution; `parts`: how often samples are looked through (solver.py)."""

    problem: Problem
    eps: float
    most: float
    parts: int
    messages: Messages

    def machine(self) -> Machine:
        """With alpha = 0."""
        whole, messages = self.problem, self.messages
        rows = block(whole.train, messages.ranks, messages.rank)
        labels = whole.labels[messages.first : messages.first + len(rows)]
        return Machine(rows, labels, whole.width, whole.limit, messages)


@contextmanager
def untimed(*_: object) -> Iterator[None]:
    """For a solution that records nothing."""
    yield
