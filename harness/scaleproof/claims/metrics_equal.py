"""Metrics that compare two launches of one repetition as far as both have come: after equally many training samples, or
after equal time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.learning_curve import EVALUATED_SAMPLES, Axis, learning_curve
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events
from scaleproof.spec.case import TrainCase
from scaleproof.stats.never import NEVER

SAME_TASK = ("workload", "workload.image_side", "workload.width", "workload.data")
"""Fields that both launches share: strategies, ranks, learning rates and minibatches may differ."""


def loss_at_samples(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Test loss over the base's, after equally many training samples of all ranks.

    loss_at_samples = test loss of the launch / test loss of the base, both at the most samples that both have had

    The base is the launch of the other arm in the same repetition, with the same seed. Between two evaluations the loss
    is interpolated linearly. Samples are those in the evaluated model: see [samples_to_quality](samples_to_quality.md).
    A launch that has diverged by then is worse than every number; two that have are not compared.

    An arm may be better at equal samples and worse at [equal time](loss_at_seconds.md), or the other way round: a claim
    says which of the two it means.
    """
    return _ratio(launch, base, "samples")


def loss_at_seconds(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Test loss over the base's, after equal time.

    loss_at_seconds = test loss of the launch / test loss of the base, both at the latest moment that both have reached

    Time runs from the first step of any rank. The base is the launch of the other arm in the same repetition, with the
    same seed. Between two evaluations the loss is interpolated linearly. A launch that has diverged by then is worse
    than every number; two that have are not compared. At equal samples: [loss_at_samples](loss_at_samples.md).
    """
    return _ratio(launch, base, "seconds")


def accuracy_at_samples(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Test accuracy above the base's, after equally many training samples of all ranks.

    accuracy_at_samples = test accuracy of the launch - test accuracy of the base, at the most samples that both have
    had

    As [loss_at_samples](loss_at_samples.md). A model whose parameters are not finite answers nothing right: it has
    an accuracy of 0.
    """
    return _difference(launch, base, "samples")


def accuracy_at_seconds(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Test accuracy above the base's, after equal time.

    accuracy_at_seconds = test accuracy of the launch - test accuracy of the base, at the latest moment that both have
    reached

    As [loss_at_seconds](loss_at_seconds.md). A model whose parameters are not finite answers nothing right: it has
    an accuracy of 0.
    """
    return _difference(launch, base, "seconds")


def _ratio(launch: Launch, base: Launch, axis: Axis) -> float | None:
    values = _at(launch, base, axis, "test_loss")
    if values is None:
        return None
    ours, theirs = values
    if not np.isfinite(values).any() or theirs == 0:
        return None
    if not np.isfinite(ours):
        return NEVER
    return ours / theirs if np.isfinite(theirs) else 1 / NEVER


def _difference(launch: Launch, base: Launch, axis: Axis) -> float | None:
    values = _at(launch, base, axis, "test_accuracy")
    return None if values is None else values[0] - values[1]


def _at(launch: Launch, base: Launch, axis: Axis, event: str) -> tuple[float, float] | None:
    """The values of both where the one that ends first has its last evaluation."""
    ours, theirs = (learning_curve(each.record, each.samples, event) for each in (launch, base))
    if ours is None or theirs is None:
        return None
    place = min(float(curve.over(axis)[-1]) for curve in (ours, theirs))
    if place < max(float(curve.over(axis)[0]) for curve in (ours, theirs)):
        return None  # one of them was evaluated only later
    found = [float(np.interp(place, curve.over(axis), curve.values)) for curve in (ours, theirs)]
    return found[0], found[1]


def making(event: str) -> Callable[[Wanted], MadeUp]:
    """Launches with one evaluation, of which the base has a loss of 1, or an accuracy of 0.5."""

    def made(wanted: Wanted) -> MadeUp:
        case = wanted.case
        if not isinstance(case, TrainCase):
            raise ImpossibleValue("only a training learns")
        value = 1.0 if wanted.value is None else wanted.value
        if event == "test_accuracy":
            value = 0.5 + (wanted.value or 0.0)
        count = Event(EVALUATED_SAMPLES, 1.0, 1.0, ranks=(0,), value=float(case.minibatch))
        return events(Event("step", 0.0, 1.0), Event(event, 1.0, 1.0, ranks=(0,), value=value), count)

    return made
