"""Time and samples to quality of one launch, as MLPerf Training counts a run: from the first touch of the data to the
first evaluation at the target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND
from scaleproof.claims.learning_curve import EVALUATED_SAMPLES, divergence, learning_curve
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, TrainCase


def time_to_quality(record: Record, samples: pd.DataFrame) -> float | None:
    """Time until the target accuracy, in s, from the first access to the data on any rank to the first evaluation at
    the target. None if the target was not reached, nothing was evaluated, or the data set has no target.

    time_to_quality = time of the first evaluation at the target - start of the first batch on any rank

    The target is a test accuracy that belongs to the data set ([workloads](../workloads.md#data)). Synthetic data has
    none. The time includes warm-up steps and earlier
    evaluations; the clock never pauses. In virtual time it starts with the first step, and is true time of the modelled
    cluster. A launch that never reaches the target has the words `not reached` with its best accuracy, or `diverged`
    with the step, in place of a number; in verdicts it counts as slower than every launch that did
    ([verdicts](../verdicts.md#launches-without-a-number)).
    The resolution is `evaluate_every` steps (or `evaluate_s`): a difference of fewer steps cannot be seen. The end is
    the start of the evaluation that reaches the target, so this evaluation's duration is not included.

    MLPerf scores several launches with different seeds by an olympic mean, in which at most one launch did not
    converge. `harness/scaleproof/stats/time_to_quality.py` does that, see [statistics](../statistics.md).
    """
    target = target_of(record.case)
    if target is None:
        return None
    rows = columns(record, samples)
    touched = rows.of("input")
    touched = touched if len(touched) else rows.of("step")
    reached = rows.of("test_accuracy")
    reached = reached[rows.value[reached] >= target]
    if not len(touched) or not len(reached):
        return None
    first = (rows.start[touched] + offsets_of(record, rows.rank[touched])).min()
    return float((rows.end[reached] + offsets_of(record, rows.rank[reached])).min() - first) / SECOND


def samples_to_quality(record: Record, samples: pd.DataFrame) -> float | None:
    """Training samples of all ranks until the target accuracy. None if the target was not reached, nothing was
    evaluated, or the data set has no target.

    samples_to_quality = training samples in the model of the first evaluation at the target

    Of ranks in lockstep these are whole steps. Of an average of replicas they are the steps of each replica when it was
    kept for this evaluation, of a servers' centre all steps that had ended at that moment. Warm-up steps count: they
    train. Gradients that came too late and were dropped count too.

    Beside [time_to_quality](time_to_quality.md): a strategy may need more samples and less time. Launches that never
    reach the target are treated alike.
    """
    target = target_of(record.case)
    curve = learning_curve(record, samples, "test_accuracy") if target is not None else None
    if target is None or curve is None:
        return None
    reached = np.flatnonzero(curve.values >= target)
    return float(curve.samples[reached[0]]) if len(reached) else None


def not_reached(record: Record, samples: pd.DataFrame) -> str | None:
    """What a launch has in place of a number if it was evaluated and never reached its target."""
    target = target_of(record.case)
    if target is None:
        return None
    rows = columns(record, samples)
    accuracies = rows.value[rows.of("test_accuracy")]
    if not len(accuracies) or accuracies.max() >= target:
        return None
    return divergence(record, samples) or f"not reached, best {accuracies.max():.3g} of {target:g}"


def loss_not_reached(target: float) -> Callable[[Record, pd.DataFrame], str | None]:
    """For a metric of a suite: what a launch has in place of a number if its test loss was evaluated and never came
    down to a target of the suite's own."""

    def words(record: Record, samples: pd.DataFrame) -> str | None:
        rows = columns(record, samples)
        losses = rows.value[rows.of("test_loss")]
        if not len(losses) or (losses <= target).any():
            return None
        finite = losses[np.isfinite(losses)]
        best = f"best {finite.min():.3g} of {target:g}" if len(finite) else "no loss was finite"
        return divergence(record, samples) or f"not reached, {best}"

    return words


def made_up(wanted: Wanted) -> MadeUp:
    """A launch that reaches its target after this time."""
    target, took = target_of(wanted.case), possible(wanted.known)
    if target is None:
        raise ImpossibleValue("this data set has no target")
    return events(Event("input"), Event("test_accuracy", took, took, ranks=(0,), value=target))


def made_up_samples(wanted: Wanted) -> MadeUp:
    """A launch that reaches its target after so many samples."""
    case, target = wanted.case, target_of(wanted.case)
    if not isinstance(case, TrainCase) or target is None:
        raise ImpossibleValue("this data set has no target")
    count = possible(wanted.known)
    step, known = Event("step", 0.0, 1.0), Event(EVALUATED_SAMPLES, 1.0, 1.0, ranks=(0,), value=count)
    if case.replicas is not None:
        return events(step, Event("test_accuracy", 1.0, 1.0, ranks=(0,), value=target), known)
    steps = round(count / case.minibatch)
    if steps < 1:
        raise ImpossibleValue(f"{count:g} samples are no step of {case.minibatch}")
    return events(step, Event("test_accuracy", 1.0, 1.0, ranks=(0,), step=steps - 1, value=target))


def target_of(case: AnyCase) -> float | None:
    """Test accuracy that counts as learned; None where the case has no data, or its data set no target."""
    if not isinstance(case, TrainCase) or case.dataset not in registry.names("dataset"):
        return None
    return case.plugin("dataset").target
