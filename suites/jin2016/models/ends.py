"""Where an arm ends after as many samples as all-reduce."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_replicas import test_loss
from scaleproof.claims.metrics_train import test_accuracy

from .beside import ALL_REDUCE, FAR, Value, beside_all_reduce, every_value


def final_loss_ratio(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Test loss at the end of an asynchronous arm over that of all-reduce, after as many samples.

    final_loss_ratio = test_loss of the arm / test_loss of all-reduce on as many nodes, with the same seed

    Of several arms the smallest. A loss of the arm that is no number counts as 10 times as high, and no ratio as
    more. Suite: jin2016.
    """
    return min(every_value(beside_all_reduce(block, _loss, _times_as_high)), default=None)


def _loss(launch: Launch) -> Value:
    return launch.value("test_loss", None, lambda: test_loss(launch.record, launch.samples))


def _times_as_high(ours: Value, theirs: Value) -> Value:
    if ours is None or theirs is None or not math.isfinite(theirs):
        return None
    return min(ours / theirs, FAR) if math.isfinite(ours) else FAR


def accuracy_behind(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """By how much the test accuracy of an asynchronous arm ends below that of all-reduce, after as many samples.

    accuracy_behind = test_accuracy of all-reduce - test_accuracy of the arm on as many nodes, with the same seed

    Of several arms the largest. Suite: jin2016.
    """
    return max(every_value(beside_all_reduce(block, _accuracy, _behind)), default=None)


def _accuracy(launch: Launch) -> Value:
    return launch.value("test_accuracy", None, lambda: test_accuracy(launch.record, launch.samples))


def _behind(ours: Value, theirs: Value) -> Value:
    return None if ours is None or theirs is None else theirs - ours


def made_up_loss(wanted: Wanted) -> MadeUp:
    """A block whose asynchronous arms end with so many times the loss of all-reduce."""
    loss = 0.5 if wanted.case.arm == ALL_REDUCE else 0.5 * possible(wanted.known, 0, FAR)
    return events(Event("test_loss", 1.0, 1.0, ranks=(0,), value=loss))


def made_up_behind(wanted: Wanted) -> MadeUp:
    """A block whose asynchronous arms end so far below all-reduce."""
    behind = 0.0 if wanted.case.arm == ALL_REDUCE else possible(wanted.known, -1, 1)
    return events(Event("test_accuracy", 1.0, 1.0, ranks=(0,), value=0.5 - behind))


METRICS = [
    Metric("final_loss_ratio", "x", "lower", block=final_loss_ratio, made_up=made_up_loss, range=(0.0, math.inf)),
    Metric("accuracy_behind", "fraction", "lower", block=accuracy_behind, made_up=made_up_behind, range=(-1.0, 1.0)),
]
