"""A training beside its base of the same seed and the same samples."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.stats.training_equivalence import relative_difference

POINTS = 100.0
SAME_SAMPLES = ("workload", "workload.image_side", "workload.width", "workload.data", "minibatch", "steps", "warmup")
"""Fields in which two trainings agree that saw the same samples, by whatever optimiser."""


def accuracy_points(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Test accuracy minus that of the base, in percentage points.

    accuracy_points = 100 x (test_accuracy of the launch - test_accuracy of the base)

    At the last evaluation, after the same number of steps on the same samples in the same order. Both have the launch's
    seed, so that they start from the same parameters and are tested on the same rows. A training that has diverged has
    an accuracy too, that of its last parameters: it is compared as any other.
    """
    ours, theirs = (_last_accuracy(each.record, each.samples) for each in (launch, base))
    return None if ours is None or theirs is None else POINTS * (ours - theirs)


def curve_difference(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Largest difference of the training loss of a step, relative to the base's largest loss. None if the two curves
    have different steps.

    curve_difference = max over steps |mean loss over ranks - that of the base| / max over steps of the base's

    As [max_loss_difference](max_loss_difference.md), for ranks that differ. Where two orders of the same operations
    differ by rounding alone it is about 1e-6.
    """
    ours, theirs = (mean_losses(each.record, each.samples) for each in (launch, base))
    if not len(ours) or len(ours) != len(theirs):
        return None
    return relative_difference(ours, theirs)


def _last_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Also of a training that has diverged, which test_accuracy leaves out."""
    rows = columns(record, samples)
    found = rows.of("test_accuracy")
    return float(rows.value[found[rows.end[found].argmax()]]) if len(found) else None


def mean_losses(record: Record, samples: pd.DataFrame) -> np.ndarray:
    """Mean over ranks of the loss of each step."""
    rows = columns(record, samples)
    found = rows.of("loss")
    if not len(found):
        return np.empty(0)
    steps = rows.step[found]
    losses: np.ndarray = np.bincount(steps, rows.value[found]) / np.bincount(steps)
    return losses


def made_up_points(wanted: Wanted) -> MadeUp:
    """Trainings that are so many points apart from a base of 0.5."""
    points = 0.0 if wanted.value is None else possible(wanted.value, -POINTS, POINTS)
    return events(Event("test_accuracy", ranks=(0,), value=0.5 + points / POINTS))


def made_up_curve(wanted: Wanted) -> MadeUp:
    """Trainings of two steps, of which the second differs by so much from a base of 1."""
    difference = 0.0 if wanted.value is None else possible(wanted.value)
    return events(Event("loss", value=1.0), Event("loss", step=1, value=1.0 - difference))


METRICS = [
    Metric(
        "accuracy_points",
        "points",
        "higher",
        pair=accuracy_points,
        same=SAME_SAMPLES,
        made_up=made_up_points,
        range=(-POINTS, POINTS),
    ),
    Metric("curve_difference", "1", "lower", pair=curve_difference, made_up=made_up_curve, range=(0.0, math.inf)),
]
