"""Metrics that compare a launch with its base: same seed, same data, another number of workers."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.stats.equivalence import relative_difference

EQUIVALENT = 1e-4
"""Largest relative difference at which two trainings count as the same. float32 sums in another order differ by 1e-7
and grow with every step."""


def max_parameter_difference(launch: Launch, base: Launch) -> float | None:
    """Largest |difference| of a parameter after the last step, relative to the base's largest |parameter|; None when
    one kept no parameters."""
    ours, theirs = launch.parameters(), base.parameters()
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    return relative_difference(ours, theirs)


def max_loss_difference(launch: Launch, base: Launch) -> float | None:
    """Largest |difference| of the loss of a step, relative to the base's largest loss; None when the curves have other
    steps."""
    ours, theirs = loss_curve(launch), loss_curve(base)
    if ours.empty or not ours.index.equals(theirs.index):
        return None
    return relative_difference(ours.to_numpy(), theirs.to_numpy())


def training_difference(launch: Launch, base: Launch) -> float | None:
    """The larger of both differences; None when one cannot be taken."""
    parameters, losses = max_parameter_difference(launch, base), max_loss_difference(launch, base)
    return None if parameters is None or losses is None else max(parameters, losses)


def same_convergence(launch: Launch, base: Launch) -> float | None:
    """1 when the trainings differ by at most EQUIVALENT, else 0."""
    difference = training_difference(launch, base)
    return None if difference is None else float(difference <= EQUIVALENT)


def loss_curve(launch: Launch) -> pd.Series:
    """Loss over the global minibatch by step, warm-up included; every rank recorded the same values."""
    losses = launch.samples[launch.samples["event"] == "loss"]
    curve: pd.Series = losses[losses["rank"] == 0].set_index("step")["value"].sort_index()
    return curve
