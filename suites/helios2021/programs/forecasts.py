"""Forecasts of used nodes, by what each may know when it is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from suite_programs.artifact_features import LAG, artifact_features
from suite_programs.node_series import STEPS_OF_DAY

from scaleproof.spec.errors import SpecError

WINDOWS = (3, 6)
"""Steps of the rolling statistics: 30 and 60 minutes."""
LAGS = (6, 18)
"""Steps: a model for the next hour, one up to 3 hours, and one for what is further, each with features as old as its
last step needs."""
START = np.datetime64("2020-07-03", "s")
"""Of a series without a date."""
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
"""The artifact's objective and bagging; its 10,000 rounds are 400 here, with early stopping on the last fifth of what
is learnt from (the artifact: on the last of its months)."""
NEEDS_LIGHTGBM = ("causal", "aged", "leaky")


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


def causally(
    used: np.ndarray, train: int, ahead: int, seed: int, model: str, aged: Callable[[int], np.ndarray]
) -> np.ndarray:
    """Forecasts (steps, ahead) by three models, none of which knows a value of the step at which it is made or of a
    later one. `aged`: features (steps, features) that are so many steps old."""
    found, begin = np.empty((len(used), ahead)), 0
    for lag in (*LAGS, ahead):
        if (end := min(lag, ahead)) > begin:
            made = fitted(aged(end), used, train, seed, model)
            steps = np.arange(len(used))[:, None] + np.arange(begin, end)[None, :]
            found[:, begin:end] = made[np.minimum(steps, len(used) - 1)]
            begin = end
    return found


def forecasts(
    used: np.ndarray,
    train: int,
    ahead: int,
    seed: int,
    kind: str,
    first: np.datetime64 = START,
    holidays: bool = True,
) -> np.ndarray:
    """(steps, ahead): at each step, what is forecast of it and of the `ahead` - 1 after it. causal, linear: three
    models, see `causally`; leaky: one with the artifact's features, 1 hour old at the step that is forecast, so that
    most are not there yet; aged: causal, with the artifact's features made older; yesterday, last: naive; oracle: the
    truth. `first`: the time of the first step; `holidays`: the artifact's features have them for Helios, and not for
    Philly."""
    steps = np.arange(len(used))[:, None] + np.arange(ahead)[None, :]
    steps = np.minimum(steps, len(used) - 1)
    ours = partial(features, used)
    theirs = partial(artifact_features, used, first, holidays)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "causal": lambda: causally(used, train, ahead, seed, "lightgbm", ours),
        "linear": lambda: causally(used, train, ahead, seed, "linear", ours),
        "aged": lambda: causally(used, train, ahead, seed, "lightgbm", theirs),
        "leaky": lambda: fitted(theirs(LAG), used, train, seed, "lightgbm")[steps],
        "yesterday": lambda: used[np.maximum(steps - STEPS_OF_DAY, 0)].astype(float),
        "last": lambda: np.repeat(used[np.maximum(np.arange(len(used)) - 1, 0)].astype(float)[:, None], ahead, 1),
        "oracle": lambda: used[steps].astype(float),
    }
    if kind not in kinds:
        raise SpecError(f"options.forecast: {kind!r} is none of {', '.join(kinds)}")
    return kinds[kind]()
