"""Metrics that compare a launch with its base: same seed, same data, another number of workers."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.stats.training_equivalence import relative_difference

EQUIVALENT = 1e-4
"""Largest relative difference at which two trainings count as the same. float32 sums in another order differ by 1e-7
and grow with every step."""


def max_parameter_difference(launch: Launch, base: Launch) -> float | None:
    """Largest |difference| of a parameter after the last step, relative to the base's largest |parameter|; None when
    one kept no parameters.

    max |ours - base| / max |base|      over all parameters after the last step

    Against a launch with the same seed, data and hyper-parameters but one worker. Relative to the largest parameter,
    because a relative error per parameter says nothing where a parameter passes through zero. float32 sums in another
    order differ by about 1e-7 per step; the difference grows with the steps. Needs `parameters.npy` in the record:
    networks up to 200,000 parameters.
    """
    ours, theirs = launch.parameters(), base.parameters()
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    return relative_difference(ours, theirs)


def max_loss_difference(launch: Launch, base: Launch) -> float | None:
    """Largest |difference| of the loss of a step, relative to the base's largest loss; None when the curves have other
    steps.

    max over steps |loss - base loss| / max over steps |base loss|

    The whole curve, warm-up steps included, against a launch with the same seed, data and hyper-parameters but one
    worker.
    """
    ours, theirs = loss_curve(launch), loss_curve(base)
    if ours.empty or not ours.index.equals(theirs.index):
        return None
    return relative_difference(ours.to_numpy(), theirs.to_numpy())


def training_difference(launch: Launch, base: Launch) -> float | None:
    """The larger of both differences; None when one cannot be taken.

    training_difference = max(max_parameter_difference, max_loss_difference)

    One number for "the same training": [parameters](max_parameter_difference.md) and [loss
    curve](max_loss_difference.md) both. 0 is bit for bit. Judged in every launch, not in the median.
    """
    parameters, losses = max_parameter_difference(launch, base), max_loss_difference(launch, base)
    return None if parameters is None or losses is None else max(parameters, losses)


def same_convergence(launch: Launch, base: Launch) -> float | None:
    """1 when the trainings differ by at most EQUIVALENT, else 0.

    same_convergence = 1 if training_difference <= 1e-4 else 0

    The form in which a paper states it. 1e-4 is our tolerance: about a thousand times the rounding of one float32
    operation, far below what workers that exchange nothing differ by (the negative control of
    das2016.own.equivalence). See [training_difference](training_difference.md) for the number behind it.

    1 holds, 0 does not.
    """
    difference = training_difference(launch, base)
    return None if difference is None else float(difference <= EQUIVALENT)


def loss_curve(launch: Launch) -> pd.Series:
    """Loss over the global minibatch by step, warm-up included; every rank recorded the same values."""
    losses = launch.samples[launch.samples["event"] == "loss"]
    curve: pd.Series = losses[losses["rank"] == 0].set_index("step")["value"].sort_index()
    return curve
