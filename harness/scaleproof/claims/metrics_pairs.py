"""Metrics that compare a launch with its base: same seed, same data, another number of workers. No clock has a part in
them, so they get the noise floor and do not use it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, MadeUp, Wanted, possible
from scaleproof.stats.training_equivalence import relative_difference

EQUIVALENT = 1e-5
"""Largest relative difference at which two trainings count as the same. float32 sums in another order differ by 1e-7
and grow with every step."""


def max_parameter_difference(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Largest |difference| of a parameter after the last step, relative to the base's largest |parameter|. None if one
    of the launches has no stored parameters.

    max |ours - base| / max |base| over all parameters after the last step

    The base is a launch with the same seed, data and hyper-parameters, but one worker. The difference is relative to
    the largest parameter, because a relative error per parameter is meaningless where a parameter passes through
    zero. float32 sums in another order differ by about 1e-7 per step, and the difference grows with the steps. The
    record must contain `parameters.npy`, which is written for networks of up to 200,000 parameters.
    """
    ours, theirs = launch.parameters(), base.parameters()
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    return relative_difference(ours, theirs)


def max_loss_difference(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Largest |difference| of the loss of a step, relative to the base's largest loss. None if the two curves have
    different steps.

    max over steps |loss - base loss| / max over steps |base loss|

    The whole curve is compared, warm-up steps included. The base is a launch with the same seed, data and
    hyper-parameters, but one worker.
    """
    ours, theirs = loss_curve(launch), loss_curve(base)
    if ours.empty or not ours.index.equals(theirs.index):
        return None
    return relative_difference(ours.to_numpy(), theirs.to_numpy())


def training_difference(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """The larger of the differences in parameters and loss. None if one of them has no value.

    training_difference = max(max_parameter_difference, max_loss_difference)

    One number for "the same training", from [parameters](max_parameter_difference.md) and [loss
    curve](max_loss_difference.md). A value of 0 means that both are equal bit for bit. Every launch is judged, not only
    the median.
    """
    parameters, losses = max_parameter_difference(launch, base), max_loss_difference(launch, base)
    return None if parameters is None or losses is None else max(parameters, losses)


def same_convergence(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """1 when the trainings differ by at most 1e-5, else 0.

    same_convergence = 1 if training_difference <= 1e-5 else 0

    Papers state equal convergence in this form. 1e-5 is our tolerance. It is about a hundred times the rounding of one
    float32 operation, and far below the difference between workers that exchange nothing (the negative control of
    das2016.own.equivalence). The number itself is [training_difference](training_difference.md).
    """
    difference = training_difference(launch, base)
    return None if difference is None else float(difference <= EQUIVALENT)


def loss_curve(launch: Launch) -> pd.Series:
    """Loss over the global minibatch by step, warm-up included; every rank recorded the same values."""
    losses = launch.samples[launch.samples["event"] == "loss"]
    curve: pd.Series = losses[losses["rank"] == 0].set_index("step")["value"].sort_index()
    return curve


def made_up(wanted: Wanted) -> MadeUp:
    """A training whose parameters and losses differ from the base's by this share; the base's are all 1."""
    difference = 0.0 if wanted.value is None else possible(wanted.value)
    losses = (Event("loss", step=0, value=1.0), Event("loss", step=1, value=1.0 - difference))
    return MadeUp(losses, parameters=np.array([1.0, 1.0 - difference]))


def made_up_same(wanted: Wanted) -> MadeUp:
    """A training that converged as the base did (1), or another way (0)."""
    same = wanted.value is None or possible(wanted.value, 0, 1) > 0.5
    return made_up(Wanted(wanted.case, 0.0 if same else 1.0))
