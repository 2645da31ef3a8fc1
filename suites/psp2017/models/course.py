"""The course of accuracy over a number of updates: how high it is on the way, and how often it falls."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

FULL = 0.9
"""Accuracy around which a made-up launch falls."""


def mean_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Test accuracy on the way, mean over evaluations at equal numbers of updates (suite psp2017).

    mean_accuracy = mean over evaluations of test_accuracy

    Evaluations are after every so many updates of the servers (`evaluate_every` steps of all workers together), so that
    two arms with equally many are compared at equal numbers of updates, whatever time those take.
    """
    accuracies = _accuracies(record, samples)
    return float(accuracies.mean()) if len(accuracies) else None


def accuracy_falls(record: Record, samples: pd.DataFrame) -> float | None:
    """By how much test accuracy falls on the way, all falls together (suite psp2017).

    accuracy_falls = sum over neighbouring evaluations of max(0, accuracy before - accuracy after)

    0 where accuracy never falls. The smoother the course, the smaller; see [mean_accuracy](mean_accuracy.md).
    """
    accuracies = _accuracies(record, samples)
    return float(np.maximum(accuracies[:-1] - accuracies[1:], 0.0).sum()) if len(accuracies) > 1 else None


def _accuracies(record: Record, samples: pd.DataFrame) -> np.ndarray:
    """Of each evaluation, in their order."""
    rows = columns(record, samples)
    found = rows.of("test_accuracy")
    values: np.ndarray = rows.value[found][np.argsort(rows.step[found], kind="stable")]
    return values


def _evaluated(case: AnyCase) -> None:
    if not case.value("evaluate_every"):
        raise ImpossibleValue("this case evaluates at no equal numbers of updates")


def made_up_mean(wanted: Wanted) -> MadeUp:
    """A launch of one evaluation."""
    _evaluated(wanted.case)
    return events(Event("test_accuracy", ranks=(0,), value=possible(wanted.known, 0.0, 1.0)))


def made_up_falls(wanted: Wanted) -> MadeUp:
    """A launch whose accuracy falls and rises again until so much is reached."""
    _evaluated(wanted.case)
    falls = int(np.ceil(possible(wanted.known, 0.0, 1e4) / FULL)) or 1
    low = FULL - wanted.known / falls
    values = [value for _ in range(falls) for value in (FULL, low)]
    return events(*(Event("test_accuracy", ranks=(0,), step=step, value=value) for step, value in enumerate(values)))


METRICS = [
    Metric("mean_accuracy", "fraction", "higher", launch=mean_accuracy, made_up=made_up_mean),
    Metric("accuracy_falls", "1", "lower", launch=accuracy_falls, made_up=made_up_falls),
]
