"""How many gradients a synchronous step waits for (teng2018): the number c that is expected to give the most gradients
per second, c / E[time of the c-th], from the times of earlier steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

WINDOW = 20
"""Steps that predictors look back (teng2018, set-up)."""
LATER = 1.05
"""A worker that was cut off is taken to need at least so many times what it has taken (teng2018.md, own estimate)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a server has seen of a step, in s, of each worker. `run`: how long it took for its gradient; `arrival`: when
    that came, since the step began; NaN in both: it was cut off, and has computed for `ran` until the step ended."""

    run: np.ndarray
    arrival: np.ndarray
    ran: np.ndarray

    @property
    def late(self) -> np.ndarray:
        """Whether a worker was cut off."""
        return np.isnan(self.run)


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a server knows before a step, of each worker. `busy`: for how many s it has been computing for an earlier
    step, `begun`; it begins this step only after that. 0: it is idle."""

    step: int
    busy: np.ndarray
    begun: np.ndarray

    def left(self, run: np.ndarray) -> np.ndarray:
        """How long busy workers will still be so, in s. `run`: how long each takes in all, (..., workers)."""
        return np.where(self.busy > 0, np.maximum(run, LATER * self.busy) - self.busy, 0.0)


class Predictor(Protocol):
    """Chooses for every step, after `observe` of the one before."""

    def observe(self, seen: Seen) -> int:
        """Takes the times of a step; the result is how many had to be imputed."""

    def choose(self, ahead: Ahead) -> int:
        """How many gradients the step waits for."""


def best(expected: np.ndarray) -> int:
    """c that maximises c over the expected time of the c-th, among c of at least half of the workers: the lower tail of
    a normal law may reach below 0. `expected`: rising, in s."""
    workers = len(expected)
    counts = np.arange(-(-workers // 2), workers + 1)
    rates = counts / np.maximum(expected[counts - 1], 1e-12)
    return int(counts[np.flatnonzero(rates >= rates.max() * (1 - 1e-9))[-1]])


class Static:
    """The same share of all workers in every step (Chen et al. 2016)."""

    def __init__(self, workers: int, share: float) -> None:
        self._count = max(1, round(share * workers))

    def observe(self, seen: Seen) -> int:
        """See Predictor."""
        return 0

    def choose(self, ahead: Ahead) -> int:
        """See Predictor."""
        return self._count


class Elfving:
    """Running order statistics: arrivals of the last steps are independent and normal; Elfving's approximation,
    E[x_(j)] = m + s z((j - pi/8) / (n - pi/4 + 1))."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._arrivals: deque[np.ndarray] = deque(maxlen=WINDOW)
        places = np.arange(1, workers + 1)
        self._scores = ndtri((places - np.pi / 8) / (workers - np.pi / 4 + 1))

    def observe(self, seen: Seen) -> int:
        """See Predictor."""
        imputed = LATER * np.nanmax(seen.arrival)
        self._arrivals.append(np.where(seen.late, imputed, seen.arrival))
        return int(seen.late.sum())

    def choose(self, ahead: Ahead) -> int:
        """See Predictor."""
        if not self._arrivals:
            return self._workers
        times = np.concatenate(self._arrivals)
        return best(times.mean() + times.std() * self._scores)


class PerWorker:
    """An exponentially weighted mean of each worker's times."""

    def __init__(self, workers: int, weight: float = 0.5) -> None:
        self._weight = weight
        self._means = np.full(workers, np.nan)

    def observe(self, seen: Seen) -> int:
        """See Predictor."""
        taken = np.where(seen.late, np.fmax(self._means, LATER * seen.ran), seen.run)
        first = np.isnan(self._means)
        self._means = np.where(first, taken, (1 - self._weight) * self._means + self._weight * taken)
        return int(seen.late.sum())

    def choose(self, ahead: Ahead) -> int:
        """See Predictor."""
        if np.isnan(self._means).any():
            return len(self._means)
        return best(np.sort(ahead.left(self._means) + self._means))


class Oracle:
    """Knows what the case's laws draw; what a step takes beside that is the mean of earlier steps."""

    def __init__(self, delay: Callable[[int, int], float]) -> None:
        """`delay`: of a worker in a step, in s."""
        self._delay = delay
        self._beside: deque[float] = deque(maxlen=WINDOW)
        self._step = 0

    def observe(self, seen: Seen) -> int:
        """See Predictor."""
        there = np.flatnonzero(~seen.late)
        drawn = np.array([self._delay(int(worker), self._step) for worker in there])
        self._beside.append(float(np.mean(seen.run[there] - drawn)))
        self._step += 1
        return 0

    def choose(self, ahead: Ahead) -> int:
        """See Predictor."""
        workers = range(len(ahead.busy))
        if not self._beside:
            return len(workers)
        beside = float(np.mean(self._beside))
        now = np.array([self._delay(worker, ahead.step) for worker in workers])
        begun = np.array([self._delay(worker, int(ahead.begun[worker])) for worker in workers])
        left = np.where(ahead.busy > 0, np.maximum(beside + begun - ahead.busy, 0.0), 0.0)
        return best(np.sort(left + beside + now))
