"""The learned predictor of a cut-off (teng2018): a model of all workers' run-times, trained once on a recorded
synchronous run; times of workers that were cut off are imputed by draws of the model above what they have taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from scipy.special import log_ndtr, ndtr, ndtri

from scaleproof.paths import user_cache
from scaleproof.record.digest import machine_id, rooms_digest
from scaleproof.spec.delay_law import delays_of
from scaleproof.strategies.cut_off_predictors import WINDOW, best
from scaleproof.strategies.run_time_model import Expected, RunTimeModel

RECORDED, RECORDED_SEED = 3000, 180304209
"""Steps of the recorded run, and its seed, which no launch has."""
DRAWS = 64
"""Draws of the next step's run-times, whose order statistics are averaged."""


@lru_cache(16)
def trained(law: str, ranks: int) -> RunTimeModel:
    """The model of a cluster, which is instrumented once: of all ranks but the first, on a synchronous run under the
    case's law, whose run-times are its delays alone. It is kept in the user's cache, since training takes seconds."""
    kept = _file(law, ranks)
    if (model := RunTimeModel.load(kept, ranks - 1)) is None:
        model = RunTimeModel(_recorded(law, ranks), WINDOW, RECORDED_SEED)
        with suppress(OSError):  # a cache that cannot be written costs only time
            model.save(kept)
    return model


def _file(law: str, ranks: int) -> Path:
    """Where the model of this law, code, torch and machine is kept."""
    made_by = (law, str(ranks), rooms_digest("spec", "strategies", "frameworks"), torch.__version__, machine_id())
    return user_cache() / "run_time_models" / f"{sha256('/'.join(made_by).encode()).hexdigest()[:16]}.npz"


def _recorded(law: str, ranks: int) -> np.ndarray:
    """Run-times of the recorded run, in s, (RECORDED, ranks - 1)."""
    delays = delays_of(law)
    return np.array(
        [[delays.drawn(rank, ranks, RECORDED_SEED, step) for rank in range(1, ranks)] for step in range(RECORDED)]
    )


class Learned:
    """What a step takes beside delays, which a recorded run of this cluster would have too, is taken from the steps
    before the first choice."""

    def __init__(self, model: RunTimeModel, seed: int, delays: Callable[[int], np.ndarray]) -> None:
        """`delays`: of all workers in a step of this launch, in s."""
        self._model, self._delays = model, delays
        self._random = np.random.default_rng([seed, 27])
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
            taken[late] = self._imputed(self._expected, times, ran, late)
        self._history.append(taken)
        return int(late.sum())

    def choose(self, step: int) -> int:
        """See Predictor."""
        if not self._history:
            return len(self._delays(step))
        history, beside = np.stack(self._history), float(np.mean(self._others))
        without = self._model.expected(history - beside, self._random, DRAWS)
        self._expected = Expected(beside + without.mean, without.deviation)
        noise = self._random.standard_normal(without.mean.shape)
        drawn = self._expected.mean + self._expected.deviation * noise
        return best(np.sort(drawn, axis=1).mean(axis=0))

    def _imputed(self, expected: Expected, times: np.ndarray, ran: np.ndarray, late: np.ndarray) -> np.ndarray:
        """Times of late workers, above what they have taken, under one draw of what was expected: drawn by how well it
        fits those that came and those that did not, so that workers of a host agree."""
        least, came = ran[late], ~late
        apart = (times[came] - expected.mean[:, came]) / expected.deviation[:, came]
        fits = -(apart**2 / 2 + np.log(expected.deviation[:, came])).sum(axis=1)
        fits += log_ndtr((expected.mean[:, late] - least) / expected.deviation[:, late]).sum(axis=1)
        chosen = int((fits + self._random.gumbel(size=len(fits))).argmax())
        mean, deviation = expected.mean[chosen, late], expected.deviation[chosen, late]
        tail = ndtr((mean - least) / deviation) * self._random.random(
            len(least)
        )  # exact far out, as lower tails are not
        imputed: np.ndarray = np.maximum(mean - deviation * ndtri(np.maximum(tail, 1e-300)), least)
        return imputed
