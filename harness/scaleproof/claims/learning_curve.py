"""How a launch learned: a loss or an accuracy over steps, over the training samples of all ranks, and over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import of_workers
from scaleproof.claims.sample_columns import Columns, columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.case_network import network_of

SECOND = 1e9
"""Nanoseconds."""
Axis = Literal["steps", "samples", "seconds"]
LOSS = "loss"
TIMES_GUESSING = 100.0
"""A loss of so many times that of guessing, the logarithm of the number of classes, is one of a training that has
diverged: by definition, as much as one that is not finite."""
EVALUATED_SAMPLES = "evaluated_samples"
"""Event of an evaluation: training samples that are in the model."""


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Values in the order of time, not finite where the training has diverged. `steps`: numbers from 0; `samples`: of
    all ranks, warm-up included; `seconds`: since the first step of any rank began, on rank 0's clock."""

    steps: np.ndarray
    samples: np.ndarray
    seconds: np.ndarray
    values: np.ndarray

    def over(self, axis: Axis) -> np.ndarray:
        """The positions of the values."""
        positions: np.ndarray = getattr(self, axis)
        return positions


def learning_curve(record: Record, samples: pd.DataFrame, event: str) -> LearningCurve | None:
    """The values of `loss`, or of an event of evaluations; None where a launch has none. Where ranks have programs of
    their own a loss is the mean over all that have one, at each step that all of them have. A program of a suite says
    by the step of an event what its curve counts; it has no training samples but these."""
    case = record.case
    if isinstance(case, OwnCase):
        return _of_program(record, samples, event)
    if not isinstance(case, TrainCase):
        return None
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.of("step"))
    chosen = rows.of(event)
    if not len(steps) or not len(chosen):
        return None
    begun = float(_moments(record, rows, steps, rows.start).min())
    if event == LOSS and case.replicas is not None:
        return _mean_over_ranks(record, case, rows, chosen, begun)
    chosen = chosen[rows.rank[chosen] == 0]
    if not len(chosen):
        return None
    moments = _moments(record, rows, chosen, rows.end)
    order = np.argsort(moments, kind="stable")
    chosen, moments = chosen[order], moments[order]
    counted = _samples_at(record, case, rows, chosen, steps, moments)
    values = _values(case, event, rows.value[chosen])
    return LearningCurve(rows.step[chosen], counted, (moments - begun) / SECOND, values)


def _of_program(record: Record, samples: pd.DataFrame, event: str) -> LearningCurve | None:
    rows = columns(record, samples)
    chosen = rows.of(event)
    chosen = chosen[rows.rank[chosen] == 0]
    if not len(chosen):
        return None
    chosen = chosen[np.argsort(rows.step[chosen], kind="stable")]
    moments = _moments(record, rows, chosen, rows.end)
    steps = rows.step[chosen]
    return LearningCurve(steps, steps, (moments - moments.min()) / SECOND, rows.value[chosen])


def _values(case: TrainCase, event: str, values: np.ndarray) -> np.ndarray:
    """Infinite where a loss is that of a training that has diverged."""
    if event not in (LOSS, "test_loss"):
        return values
    found: np.ndarray = np.where(_is_loss(case, values), values, np.inf)
    return found


def _is_loss(case: TrainCase, values: np.ndarray) -> np.ndarray:
    """Whether each is the loss of a training that has not diverged."""
    fine: np.ndarray = np.isfinite(values) & (values <= most_loss(case))
    return fine


def most_loss(case: TrainCase) -> float:
    """The largest loss of a training that has not diverged, in nat."""
    try:
        classes = network_of(case).classes
    except SpecError:  # its workload is not installed here
        return math.inf
    return TIMES_GUESSING * math.log(classes) if classes > 1 else math.inf


def _moments(record: Record, rows: Columns, chosen: np.ndarray, times: np.ndarray) -> np.ndarray:
    """On rank 0's clock, ns."""
    moments: np.ndarray = times[chosen] + offsets_of(record, rows.rank[chosen])
    return moments


def _samples_at(
    record: Record, case: TrainCase, rows: Columns, chosen: np.ndarray, steps: np.ndarray, moments: np.ndarray
) -> np.ndarray:
    """Training samples that are in the values. Ranks in lockstep have trained whole steps. Of ranks at their own pace
    an evaluation says it; else it is what all steps had that ended before it, as for a centre."""
    if case.replicas is None:
        whole: np.ndarray = (rows.step[chosen].astype(np.int64) + 1) * case.minibatch
        return whole
    said = rows.of(EVALUATED_SAMPLES)
    if len(said) == len(chosen):
        counts: np.ndarray = rows.value[said[np.argsort(rows.end[said], kind="stable")]]
        return counts
    ends = np.sort(_moments(record, rows, steps, rows.end))
    ended: np.ndarray = np.searchsorted(ends, moments, side="right") * case.batch
    return ended


def _mean_over_ranks(
    record: Record, case: TrainCase, rows: Columns, chosen: np.ndarray, begun: float
) -> LearningCurve | None:
    chosen = chosen[np.argsort(rows.step[chosen], kind="stable")]
    steps, first, counts = np.unique(rows.step[chosen], return_index=True, return_counts=True)
    values = _values(case, LOSS, np.add.reduceat(rows.value[chosen], first) / counts)
    moments = np.maximum.reduceat(_moments(record, rows, chosen, rows.end), first)
    whole = counts == case.loss_ranks
    if not whole.any():
        return None
    steps, values, moments = steps[whole], values[whole], moments[whole]
    return LearningCurve(steps, (steps.astype(np.int64) + 1) * case.minibatch, (moments - begun) / SECOND, values)


def diverged_at(record: Record, samples: pd.DataFrame) -> int | None:
    """The first step, counted from 0 with the warm-up, at which a loss of training or of a test was not finite or above
    `most_loss`, on any rank; None: never, or the last evaluation is below it again."""
    if not isinstance(record.case, TrainCase) or record.case.compute != "real":
        return None
    rows = columns(record, samples)
    tests, losses = rows.of("test_loss"), rows.of(LOSS, "test_loss")
    if len(tests) and _is_loss(record.case, rows.value[tests[rows.end[tests].argmax()]]):
        return None
    wrong = losses[~_is_loss(record.case, rows.value[losses])]
    return int(rows.step[wrong].min()) if len(wrong) else None


def divergence(record: Record, samples: pd.DataFrame) -> str | None:
    """What a launch has in place of a number if it diverged."""
    step = diverged_at(record, samples)
    return None if step is None else f"diverged at step {step}"
