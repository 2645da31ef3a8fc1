"""Forecasts of used nodes, by what each may know when it is made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from suite_programs.node_series import STEPS_OF_DAY

from scaleproof.spec.errors import SpecError

WINDOWS = (3, 6)
"""Steps of the rolling statistics: 30 and 60 minutes."""
LEAKY_LAG = 6
"""The artifact's features are 1 hour old, whatever they are to forecast."""
ROUNDS, STOP = 400, 30
PARAMETERS = {
    "objective": "rmse",
    "bagging_fraction": 0.85,
    "bagging_freq": 1,
    "learning_rate": 0.05,
    "num_leaves": 31,
    "verbosity": -1,
    "num_threads": 1,
    "deterministic": True,
}
"""The artifact's objective and bagging; its 10,000 rounds are 400 here, with early stopping on the last fifth."""
NEEDS_LIGHTGBM = ("causal", "leaky")


def features(used: np.ndarray, lag: int) -> np.ndarray:
    """(steps, features) of each step, of values that are at least `lag` steps old: the last one, statistics of 30 and
    60 minutes, 3 hours before, the same time yesterday and a week ago; and the calendar."""
    steps = np.arange(len(used))

    def old(by: int) -> np.ndarray:
        return np.asarray(used[np.maximum(steps - by, 0)], float)

    columns = [old(lag), old(lag + 18), old(max(lag, STEPS_OF_DAY)), old(max(lag, 7 * STEPS_OF_DAY))]
    for window in WINDOWS:
        past = np.stack([old(lag + each) for each in range(window)])
        columns += [past.mean(0), np.median(past, 0), past.std(0)]
    turn, week = 2 * np.pi * steps / STEPS_OF_DAY, 2 * np.pi * steps / (7 * STEPS_OF_DAY)
    return np.column_stack([*columns, np.sin(turn), np.cos(turn), np.sin(week), np.cos(week)])


def fitted(inputs: np.ndarray, target: np.ndarray, train: int, seed: int, model: str) -> np.ndarray:
    """Forecasts of all steps (steps,) by a model of the first `train`. linear: least squares."""
    if model == "linear":
        ones = np.column_stack([inputs, np.ones(len(inputs))])
        weights = np.linalg.lstsq(ones[:train], target[:train].astype(float), rcond=None)[0]
        return np.asarray(ones @ weights)
    import lightgbm

    kept = train * 4 // 5
    data = lightgbm.Dataset(inputs[:kept], target[:kept])
    valid = lightgbm.Dataset(inputs[kept:train], target[kept:train], reference=data)
    stop = lightgbm.early_stopping(STOP, verbose=False)
    found = lightgbm.train({**PARAMETERS, "seed": seed % 2**31}, data, ROUNDS, valid_sets=[valid], callbacks=[stop])
    return np.asarray(found.predict(inputs, num_threads=1))


def forecasts(used: np.ndarray, train: int, ahead: int, seed: int, kind: str) -> np.ndarray:
    """(steps, ahead): at each step, what is forecast of it and of the `ahead` - 1 after it. causal, linear: one model,
    whose features are as old as the last of them needs; leaky: the artifact's, 1 hour old at the step that is
    forecast, so that most are not there yet; yesterday, last: naive; oracle: the truth."""
    steps = np.arange(len(used))[:, None] + np.arange(ahead)[None, :]
    steps = np.minimum(steps, len(used) - 1)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "causal": lambda: fitted(features(used, ahead), used, train, seed, "lightgbm")[steps],
        "linear": lambda: fitted(features(used, ahead), used, train, seed, "linear")[steps],
        "leaky": lambda: fitted(features(used, LEAKY_LAG), used, train, seed, "lightgbm")[steps],
        "yesterday": lambda: used[np.maximum(steps - STEPS_OF_DAY, 0)].astype(float),
        "last": lambda: np.repeat(used[np.maximum(np.arange(len(used)) - 1, 0)].astype(float)[:, None], ahead, 1),
        "oracle": lambda: used[steps].astype(float),
    }
    if kind not in kinds:
        raise SpecError(f"options.forecast: {kind!r} is none of {', '.join(kinds)}")
    return kinds[kind]()
