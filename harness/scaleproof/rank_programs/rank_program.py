"""A program of a rank, written once and driven on three clocks: in processes over a transport
(programs/process_driver.py), the same with replayed compute, and in virtual time (simulate/virtual_run.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

import numpy as np

from scaleproof.rank_programs.effects import Effect
from scaleproof.spec.case import OwnCase, TrainCase


class Clock(Protocol):
    """What a driver lets a program tell it. `succeeds`: the step that the rank before it did not finish, where this one
    is the successor of one that was killed, else None; `seed`: the launch's; `lost`: ranks that this one knows to be
    gone now."""

    succeeds: int | None
    seed: int

    @property
    def lost(self) -> frozenset[int]: ...

    def step_begins(self, step: int, warmup: bool) -> None:
        """A step of this rank begins, and the one before it has ended."""

    def steps_end(self) -> None:
        """The last step has ended."""

    def memory(self, nbytes: int) -> np.ndarray:
        """See RankProgram.memory."""

    def now(self) -> float:
        """True time since all ranks began, in s."""

    def note(self, event: str, value: float) -> None:
        """Records a value at this moment of this step."""

    def charge(self, nbytes: int) -> None:
        """See RankProgram.charge."""


FINISHED = "finished"
"""The call that asks a rank how many steps it has finished; a question has no bytes, an answer is a float32."""
FINISHED_NBYTES = 4
GONE = float(np.finfo(np.float32).max)
"""What a rank has finished that takes no more steps."""

Form = Callable[[Any, int, Clock], "RankProgram"]
"""Makes the program of a rank: a case, the rank, and its clock."""


class RankProgram(ABC):
    """One rank. `main` yields effects, and `serve` answers calls of its peers, also while `main` computes, until all
    ranks have ended. `checks` runs when all have ended, outside of the timed region."""

    finished = 0.0
    """Steps that this rank has finished, for peers that ask; GONE: it takes no more."""
    first_step = 0
    """Of this rank: that of a successor is the one that the rank before it did not finish."""

    def __init__(self, case: OwnCase | TrainCase, rank: int, clock: Clock) -> None:
        self.case: OwnCase = case  # type: ignore[assignment]  # a strategy's is a TrainCase
        self.rank, self.world_size = rank, case.ranks
        self._clock = clock

    @abstractmethod
    def main(self) -> Generator[Effect, Any, None]:
        """The program of the rank."""

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """Answers a call of a peer. It must not wait for anything."""
        if name == FINISHED:
            return np.array([self.finished], np.float32)
        raise ValueError(f"rank {source} calls {name!r}, which {type(self).__name__} does not serve")

    def charge(self, nbytes: int) -> None:
        """In `serve`: its own arithmetic on so many bytes, after which the answer leaves."""
        self._clock.charge(nbytes)

    def regions(self) -> dict[str, np.ndarray]:
        """Flat arrays by name that peers may put into and get from; called once, before any `main` begins."""
        return {}

    def memory(self, count: int, dtype: str = "float32") -> np.ndarray:
        """A flat array of zeros for `regions`, where peers reach it by the transport's one-sided operations, if it has
        some. Other arrays are reached by messages."""
        return self._clock.memory(count * np.dtype(dtype).itemsize).view(dtype)

    def groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Groups of ranks for collectives, by name: parts of all ranks, of which a rank is in one at most."""
        return {}

    def checks(self) -> list[tuple[str, bool, str]]:
        """Name, whether it passed, and detail of each check of this rank's results."""
        return []

    @property
    def timed_steps(self) -> int:
        """Steps of the case after its warm-up."""
        return self.case.iterations

    def time_is_over(self) -> bool:
        """Whether the rank begins no more steps."""
        return False

    def steps(self, count: int | None = None) -> Iterator[int]:
        """Numbers of this rank's steps, warm-up first. `count`: timed steps (default: the case's iterations)."""
        for step in range(self.first_step, self.case.warmup + (self.timed_steps if count is None else count)):
            if self.time_is_over():
                break
            self._clock.step_begins(step, step < self.case.warmup)
            yield step
        self._clock.steps_end()
