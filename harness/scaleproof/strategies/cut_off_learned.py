"""The learned predictor of a cut-off (teng2018): a model of all workers' run-times, trained once on a recorded
synchronous run; times of workers that were cut off are imputed by draws of the model above what they have taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from scaleproof.strategies.cut_off_predictors import WINDOW, best
from scaleproof.strategies.run_time_model import Expected, RunTimeModel

RECORDED = 400
"""Steps of the recorded run (teng2018.md, own estimate: iterations)."""
OTHER_SEED = 1 << 20
"""Added to a launch's seed for the run that the model learns from."""
DRAWS = 64
"""Draws of the next step's run-times, whose order statistics are averaged."""


class Learned:
    """What a step takes beside delays, which a recorded run of this cluster would have too, is taken from the steps
    before the first choice."""

    def __init__(self, recorded: np.ndarray, seed: int, delays: Callable[[int], np.ndarray]) -> None:
        """`recorded`: run-times of a synchronous run under the same law, (steps, workers), in s: its delays alone;
        `delays`: of all workers in a step of this launch, in s."""
        self._model = RunTimeModel(recorded, WINDOW, seed)
        self._random, self._delays = np.random.default_rng([seed, 27]), delays
        self._history: deque[np.ndarray] = deque(maxlen=WINDOW)
        self._others = list[float]()
        """Of each step before the first choice: mean of what a worker took beside its delay, in s."""
        self._expected: Expected | None = None

    def observe(self, times: np.ndarray, ran: np.ndarray) -> int:
        """See Predictor."""
        late, taken = np.isnan(times), times.copy()
        if self._expected is None:
            self._others.append(float(np.mean(times - self._delays(len(self._others)))))
        else:
            taken[late] = self._imputed(self._expected, ran, late)
        self._history.append(taken)
        return int(late.sum())

    def choose(self, step: int) -> int:
        """See Predictor."""
        if not self._history:
            return len(self._delays(step))
        history, beside = np.stack(self._history), float(np.mean(self._others))
        without = self._model.expected(history - beside, DRAWS)
        self._expected = Expected(beside + without.mean, without.deviation)
        noise = self._random.standard_normal(without.mean.shape)
        drawn = self._expected.mean + self._expected.deviation * noise
        return best(np.sort(drawn, axis=1).mean(axis=0))

    def _imputed(self, expected: Expected, ran: np.ndarray, late: np.ndarray) -> np.ndarray:
        """For each late worker by itself: a draw of what was expected, of those above what it has taken."""
        least, mean, deviation = ran[late], expected.mean[:, late], expected.deviation[:, late]
        above = ndtr((mean - least) / deviation)
        shares = above.cumsum(axis=0) / np.maximum(above.sum(axis=0), 1e-300)
        chosen = (shares < self._random.random(len(least))).sum(axis=0).clip(max=len(mean) - 1)
        places = chosen, np.arange(len(least))
        tail = above[places] * self._random.random(len(least))  # probabilities of the upper tail are exact far out
        drawn = mean[places] - deviation[places] * ndtri(np.maximum(tail, 1e-300))
        imputed: np.ndarray = np.maximum(drawn, least)
        return imputed
