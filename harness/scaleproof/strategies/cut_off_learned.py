"""The learned predictor of a cut-off (teng2018): a model of all workers' run-times, trained once on a recorded
synchronous run; times of workers that were cut off are imputed by draws of the model above what they have taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from scaleproof.spec.case import TrainCase
from scaleproof.strategies.cut_off_predictors import WINDOW, Ahead, Seen, best
from scaleproof.strategies.replica import CaseDelays
from scaleproof.strategies.run_time_model import Expected, RunTimeModel

RECORDED = 400
"""Steps of the recorded run (teng2018.md, own estimate: iterations)."""
OTHER_SEED = 1 << 20
"""Added to a launch's seed for the run that the model learns from."""
DRAWS = 64
"""Draws of the next step's run-times, whose order statistics are averaged."""


def recorded_run(case: TrainCase, seed: int) -> np.ndarray:
    """Run-times in s, (steps, workers), of a synchronous run under the case's law with another seed: its delays
    alone."""
    delays = CaseDelays(case, seed + OTHER_SEED)
    workers = range(1, case.ranks)
    return np.array([[delays.of_step(rank, step) for rank in workers] for step in range(RECORDED)])


class Learned:
    """What a step takes beside delays, which a recorded run of this cluster would have too, is taken from the steps
    before the first choice."""

    def __init__(self, recorded: np.ndarray, seed: int, delay: Callable[[int, int], float]) -> None:
        """`recorded`: run-times of a synchronous run, (steps, workers), in s; `delay`: of a worker in a step, in s."""
        self._model = RunTimeModel(recorded, WINDOW, seed)
        self._random, self._delay = np.random.default_rng([seed, 27]), delay
        self._history: deque[np.ndarray] = deque(maxlen=WINDOW)
        self._others = list[float]()
        """Of each step before the first choice: mean of what a worker took beside its delay, in s."""
        self._expected: Expected | None = None

    @property
    def _beside(self) -> float:
        return float(np.mean(self._others)) if self._others else 0.0

    def observe(self, seen: Seen) -> int:
        """See Predictor."""
        late, times = seen.late, seen.run.copy()
        if self._expected is None:
            drawn = [self._delay(worker, len(self._others)) for worker in range(len(times))]
            self._others.append(float(np.mean(times - drawn)))
        else:
            times[late] = self._imputed(seen.ran, late)
        self._history.append(times)
        return int(late.sum())

    def choose(self, ahead: Ahead) -> int:
        """See Predictor."""
        if not self._history:
            return len(ahead.busy)
        history, beside = np.stack(self._history), self._beside
        without = self._model.expected(history - beside, DRAWS)
        self._expected = Expected(beside + without.mean, without.deviation)
        noise = self._random.standard_normal(without.mean.shape)
        runs = np.maximum(self._expected.mean + self._expected.deviation * noise, 0.0)
        arrivals = ahead.left(history[-1]) + runs
        return best(np.sort(arrivals, axis=1).mean(axis=0))

    def _imputed(self, ran: np.ndarray, late: np.ndarray) -> np.ndarray:
        """For each late worker by itself: a draw of what was expected, of those above what it has taken."""
        assert self._expected is not None
        least, mean, deviation = ran[late], self._expected.mean[:, late], self._expected.deviation[:, late]
        above = ndtr((mean - least) / deviation)
        shares = above.cumsum(axis=0) / np.maximum(above.sum(axis=0), 1e-300)
        chosen = (shares < self._random.random(len(least))).sum(axis=0).clip(max=len(mean) - 1)
        places = chosen, np.arange(len(least))
        tail = above[places] * self._random.random(len(least))  # probabilities of the upper tail are exact far out
        drawn = mean[places] - deviation[places] * ndtri(np.maximum(tail, 1e-300))
        return np.maximum(drawn, least)
