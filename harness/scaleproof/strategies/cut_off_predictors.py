"""How many gradients a synchronous step waits for (teng2018): the number c that is expected to give the most gradients
per second, c / E[time of the c-th], from the times of earlier steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.special import ndtri

WINDOW = 20
"""Steps that the running order statistics look back (teng2018, set-up)."""
LATER = 1.05
"""A worker that was cut off is taken to need at least so many times what the step took (teng2018.md, own estimate)."""


class Predictor(Protocol):
    """Of `workers` times of a step, in s. NaN: the worker was cut off, after at least `cut` s."""

    def observe(self, times: np.ndarray, cut: float) -> int:
        """The times of a step; the result is how many were imputed."""

    def choose(self) -> int:
        """How many gradients the next step waits for."""


def best(expected: np.ndarray) -> int:
    """c that maximises c over the expected time of the c-th, among c of at least half of the workers: the lower tail of
    a normal law may reach below 0."""
    workers = len(expected)
    counts = np.arange(1, workers + 1)
    least = -(-workers // 2)
    rate = counts[least - 1 :] / np.maximum(expected[least - 1 :], 1e-12)
    return int(counts[least - 1 :][rate.argmax()])


class Static:
    """The same share of all workers in every step (Chen et al. 2016)."""

    def __init__(self, workers: int, share: float) -> None:
        self._count = max(1, round(share * workers))

    def observe(self, times: np.ndarray, cut: float) -> int:
        """See Predictor."""
        return 0

    def choose(self) -> int:
        """See Predictor."""
        return self._count


class Elfving:
    """Running order statistics: times of the last steps are independent and normal; Elfving's approximation,
    E[x_(j)] = m + s z((j - pi/8) / (n - pi/4 + 1))."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._times: deque[np.ndarray] = deque(maxlen=WINDOW)
        places = np.arange(1, workers + 1)
        self._scores = ndtri((places - np.pi / 8) / (workers - np.pi / 4 + 1))

    def observe(self, times: np.ndarray, cut: float) -> int:
        """See Predictor."""
        late = np.isnan(times)
        self._times.append(np.where(late, LATER * cut, times))
        return int(late.sum())

    def choose(self) -> int:
        """See Predictor."""
        if not self._times:
            return self._workers
        seen = np.concatenate(self._times)
        return best(seen.mean() + seen.std() * self._scores)


class Oracle:
    """Knows the delays that the case's laws draw for the next step of each worker; what a step takes beside them is the
    mean of earlier steps."""

    def __init__(self, workers: int, delay: Callable[[int], float], last_delay: Callable[[int], float]) -> None:
        """`delay`, `last_delay`: of a worker's next step and of its last one, in s."""
        self._workers, self._delay, self._last_delay = workers, delay, last_delay
        self._beside: deque[float] = deque(maxlen=WINDOW)

    def observe(self, times: np.ndarray, cut: float) -> int:
        """See Predictor."""
        there = [worker for worker in range(self._workers) if not np.isnan(times[worker])]
        self._beside.append(float(np.mean([times[worker] - self._last_delay(worker) for worker in there])))
        return 0

    def choose(self) -> int:
        """See Predictor."""
        if not self._beside:
            return self._workers
        delays = np.array([self._delay(worker) for worker in range(self._workers)])
        return best(np.sort(float(np.mean(self._beside)) + delays))


class PerWorker:
    """An exponentially weighted mean of each worker's times."""

    def __init__(self, workers: int, weight: float = 0.5) -> None:
        self._weight = weight
        self._means = np.full(workers, np.nan)

    def observe(self, times: np.ndarray, cut: float) -> int:
        """See Predictor."""
        late = np.isnan(times)
        taken = np.where(late, np.fmax(self._means, LATER * cut), times)
        first = np.isnan(self._means)
        self._means = np.where(first, taken, (1 - self._weight) * self._means + self._weight * taken)
        return int(late.sum())

    def choose(self) -> int:
        """See Predictor."""
        return len(self._means) if np.isnan(self._means).any() else best(np.sort(self._means))
