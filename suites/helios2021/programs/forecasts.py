"""Forecasts of used nodes, by what each may know when it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from suite_programs.artifact_features import LAG, artifact_features
from suite_programs.forest import Trees
from suite_programs.node_series import STEPS_OF_DAY

from scaleproof.spec.program_options import choice

WINDOWS = (3, 6)
"""Steps of the rolling statistics: 30 and 60 minutes."""
LAGS = (6, 18)
"""Steps: a model for the next hour, one up to 3 hours, and one for what is further, each with features as old as its
last step needs."""
START = np.datetime64("2020-07-03", "s")
"""Of a series without a date."""
STOP = 30
PARAMETERS = {"objective": "rmse", "bagging_fraction": 0.85, "bagging_freq": 1}
"""The artifact's objective and bagging; its 10,000 rounds are 400 here, with early stopping on the last fifth of what
is learnt from (the artifact: on the last of its months)."""


@dataclass(frozen=True, slots=True)
class Models:
    """What is fitted: the trees of LightGBM, and of least squares the penalty on squared weights of standardised
    features, for each sample."""

    trees: Trees
    penalty: float = 0.0


MODELS = Models(Trees(leaves=31, rate=0.05, least=20, rounds=400))
"""Where a case does not say otherwise."""

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


def least_squares(inputs: np.ndarray, target: np.ndarray, train: int, penalty: float) -> np.ndarray:
    """Forecasts of all steps (steps,) by the weights that fit the first `train`; see Models."""
    if not penalty:
        ones = np.column_stack([inputs, np.ones(len(inputs))])
        weights = np.linalg.lstsq(ones[:train], target[:train].astype(float), rcond=None)[0]
        return np.asarray(ones @ weights)
    past, level = inputs[:train], float(target[:train].mean())
    spread = past.std(0)
    scaled = (inputs - past.mean(0)) / np.where(spread > 0, spread, 1.0)
    count = inputs.shape[1]
    rows = np.vstack([scaled[:train], np.sqrt(penalty * train) * np.eye(count)])
    weights = np.linalg.lstsq(rows, np.append(target[:train] - level, np.zeros(count)), rcond=None)[0]
    return np.asarray(scaled @ weights + level)


def boosted(inputs: np.ndarray, target: np.ndarray, train: int, seed: int, trees: Trees) -> np.ndarray:
    """Forecasts of all steps (steps,) by LightGBM, which learns from the first `train`."""
    import lightgbm

    parameters = {**PARAMETERS, **trees.parameters, "seed": seed % 2**31}
    kept = train * 4 // 5
    data = lightgbm.Dataset(inputs[:kept], target[:kept])
    valid = lightgbm.Dataset(inputs[kept:train], target[kept:train], reference=data)
    stop = lightgbm.early_stopping(STOP, verbose=False)
    found = lightgbm.train(parameters, data, trees.rounds, valid_sets=[valid], callbacks=[stop])
    return np.asarray(found.predict(inputs, num_threads=1))


def causally(ahead: int, fit: Callable[[np.ndarray], np.ndarray], aged: Callable[[int], np.ndarray]) -> np.ndarray:
    """Forecasts (steps, ahead) by three models, none of which knows a value of the step at which it is made or of a
    later one. `fit`: forecasts of all steps (steps,) from features; `aged`: features (steps, features) that are so many
    steps old."""
    begin, parts = 0, list[np.ndarray]()
    for lag in (*LAGS, ahead):
        if (end := min(lag, ahead)) > begin:
            made = fit(aged(end))
            steps = np.arange(len(made))[:, None] + np.arange(begin, end)[None, :]
            parts.append(made[np.minimum(steps, len(made) - 1)])
            begin = end
    return np.hstack(parts)


def forecasts(
    used: np.ndarray,
    train: int,
    ahead: int,
    seed: int,
    kind: str,
    first: np.datetime64 = START,
    holidays: bool = True,
    models: Models = MODELS,
) -> np.ndarray:
    """(steps, ahead): at each step, what is forecast of it and of the `ahead` - 1 after it. causal, linear: three
    models, see `causally`; leaky: one with the artifact's features, 1 hour old at the step that is forecast, so that
    most are not there yet; aged: causal, with the artifact's features made older; yesterday, last: naive; oracle: the
    truth. `first`: the time of the first step; `holidays`: the artifact's features have them for Helios, and not for
    Philly."""
    steps = np.arange(len(used))[:, None] + np.arange(ahead)[None, :]
    steps = np.minimum(steps, len(used) - 1)
    ours = partial(features, used)
    linear = partial(least_squares, target=used, train=train, penalty=models.penalty)
    trees = partial(boosted, target=used, train=train, seed=seed, trees=models.trees)
    theirs = partial(artifact_features, used, first, holidays)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "causal": lambda: causally(ahead, trees, ours),
        "linear": lambda: causally(ahead, linear, ours),
        "aged": lambda: causally(ahead, trees, theirs),
        "leaky": lambda: trees(theirs(LAG))[steps],
        "yesterday": lambda: used[np.maximum(steps - STEPS_OF_DAY, 0)].astype(float),
        "last": lambda: np.repeat(used[np.maximum(np.arange(len(used)) - 1, 0)].astype(float)[:, None], ahead, 1),
        "oracle": lambda: used[steps].astype(float),
    }
    return kinds[choice({"forecast": kind}, "forecast", kinds)]()
