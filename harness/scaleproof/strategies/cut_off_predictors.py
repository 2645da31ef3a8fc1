"""How many gradients a synchronous step waits for (teng2018): the number c that is expected to give the most gradients
per second, c / E[time of the c-th], from the times of earlier steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import NormalDist
from typing import Protocol

import numpy as np

WINDOW = 20
"""Steps that predictors look back (teng2018, set-up)."""
LATER = 1.05
"""A worker that was cut off is taken to need at least so many times what it has taken (teng2018.md, own estimate)."""


class Predictor(Protocol):
    """Chooses for every step, after `observe` of the one before. Times are in s, of each worker, (workers,)."""

    def observe(self, times: np.ndarray, ran: np.ndarray) -> int:
        """Takes what a step has shown: how long each worker took, NaN where it was cut off; it had `ran` for so long
        when the step ended. The result is how many times had to be imputed."""

    def choose(self, step: int) -> int:
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

    def observe(self, times: np.ndarray, ran: np.ndarray) -> int:
        """See Predictor; it needs no times."""
        return 0

    def choose(self, step: int) -> int:
        """See Predictor."""
        return self._count


class Elfving:
    """Running order statistics: times of the last steps are independent and normal; Elfving's approximation,
    E[x_(j)] = m + s z((j - pi/8) / (n - pi/4 + 1))."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._times: deque[np.ndarray] = deque(maxlen=WINDOW)
        places = np.arange(1, workers + 1)
        shares = (places - np.pi / 8) / (workers - np.pi / 4 + 1)
        self._scores = np.array([NormalDist().inv_cdf(share) for share in shares])

    def observe(self, times: np.ndarray, ran: np.ndarray) -> int:
        """See Predictor."""
        late = np.isnan(times)
        self._times.append(np.where(late, LATER * ran, times))
        return int(late.sum())

    def choose(self, step: int) -> int:
        """See Predictor."""
        if not self._times:
            return self._workers
        seen = np.concatenate(self._times)
        return best(seen.mean() + seen.std() * self._scores)


class PerWorker:
    """An exponentially weighted mean of each worker's times."""

    def __init__(self, workers: int, weight: float = 0.5) -> None:
        self._weight = weight
        self._means = np.full(workers, np.nan)

    def observe(self, times: np.ndarray, ran: np.ndarray) -> int:
        """See Predictor."""
        late = np.isnan(times)
        taken = np.where(late, np.fmax(self._means, LATER * ran), times)
        first = np.isnan(self._means)
        self._means = np.where(first, taken, (1 - self._weight) * self._means + self._weight * taken)
        return int(late.sum())

    def choose(self, step: int) -> int:
        """See Predictor."""
        return len(self._means) if np.isnan(self._means).any() else best(np.sort(self._means))


class Oracle:
    """Knows what the case's laws draw; what a step takes beside that is the mean of earlier steps."""

    def __init__(self, delays: Callable[[int], np.ndarray]) -> None:
        """`delays`: of all workers in a step, in s."""
        self._delays = delays
        self._beside: deque[float] = deque(maxlen=WINDOW)
        self._step = 0

    def observe(self, times: np.ndarray, ran: np.ndarray) -> int:
        """See Predictor; what was cut off is known."""
        self._beside.append(float(np.nanmean(times - self._delays(self._step))))
        self._step += 1
        return 0

    def choose(self, step: int) -> int:
        """See Predictor."""
        delays = self._delays(step)
        return best(np.sort(np.mean(self._beside) + delays)) if self._beside else len(delays)
