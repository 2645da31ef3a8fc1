"""Predicted durations by LightGBM, each from jobs that had ended under FIFO when its model was trained. Under another
policy some of them would still wait or run then: a look-ahead, which favours the prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite_programs.jobs import Jobs

PARTS = 8
"""Of the time of a trace, with a model for each but the first, which has no past: 0, and the rolling estimate stands
in."""
LEAST = 100
"""Ended jobs that a model is trained on at least."""
HOUR_S, DAY_S = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Trees:
    """Of LightGBM: leaves of a tree, learning rate, samples of a leaf at least, and rounds at most."""

    leaves: int
    rate: float
    least: int
    rounds: int

    @property
    def parameters(self) -> dict[str, str | int | float | bool]:
        """As LightGBM names them. One thread, so that the model is the same on every machine."""
        return {
            "num_leaves": self.leaves,
            "learning_rate": self.rate,
            "min_data_in_leaf": self.least,
            "verbosity": -1,
            "num_threads": 1,
            "deterministic": True,
        }


QUEUE_TREES = Trees(leaves=31, rate=0.05, least=10, rounds=200)
"""Where a case does not say otherwise. Of the paper's values only features are known."""
MISSING = (
    "QSSF's second predictor needs LightGBM, which is not installed",
    "type: python3 -m tools.setup extras helios2021",
)


def features(jobs: Jobs) -> np.ndarray:
    """(jobs, features), known at submission: user, VC, name, GPUs, hour of the day, day of the week."""
    hour, day = jobs.submit % DAY_S / HOUR_S, jobs.submit // DAY_S % 7
    return np.column_stack([jobs.user, jobs.vc, jobs.name, jobs.gpus, hour, day]).astype(float)


def predictions(jobs: Jobs, ended: np.ndarray, seed: int, trees: Trees = QUEUE_TREES) -> np.ndarray:
    """Durations in s (jobs,). `ended`: when each job ends under FIFO, the schedule that a model's past is taken from.
    The target is the logarithm: durations span six orders."""
    import lightgbm

    inputs, target = features(jobs), np.log1p(jobs.duration)
    found = np.zeros(jobs.count)
    parameters = {**trees.parameters, "objective": "regression", "seed": seed % 2**31}
    edges = np.linspace(jobs.submit[0], jobs.submit[-1], PARTS + 1)[1:]
    for begin, end in zip(edges[:-1], edges[1:], strict=True):
        past = ended <= begin
        coming = (jobs.submit > begin) & (jobs.submit <= end)
        if past.sum() < LEAST or not coming.any():
            continue
        data = lightgbm.Dataset(inputs[past], target[past], categorical_feature=[0, 1, 2], free_raw_data=True)
        model = lightgbm.train(parameters, data, trees.rounds)
        found[coming] = np.expm1(np.asarray(model.predict(inputs[coming], num_threads=1)))
    return found
