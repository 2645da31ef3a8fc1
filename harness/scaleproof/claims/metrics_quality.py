"""Time to quality of one launch, as MLPerf Training counts a run: from the first touch of the data to the first
evaluation at the target."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import SECOND
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, TrainCase


def time_to_quality(record: Record, samples: pd.DataFrame) -> float | None:
    """Time until the target accuracy, in s, from the first access to the data on any rank to the first evaluation at
    the target. None if training did not converge, nothing was evaluated, or the data set has no target.

    time_to_quality = time of the first evaluation at the target - start of the first batch on any rank

    The target is a test accuracy that belongs to the data set ([workloads](../workloads.md#data)). Synthetic data has
    none. The time includes warm-up steps and earlier
    evaluations; the clock never pauses. In virtual time, where data take none, it begins with the timed region. A
    launch that never reaches the target did not converge and has no value.
    The resolution is `evaluate_every` steps: a difference of fewer steps cannot be seen. The end is the start of the
    evaluation that reaches the target, so this evaluation's duration is not included.

    MLPerf scores several launches with different seeds by an olympic mean, in which at most one launch did not
    converge. `harness/scaleproof/stats/time_to_quality.py` does that, see [statistics](../statistics.md).
    """
    target = _target(record.case)
    if target is None:
        return None
    rows = columns(record, samples)
    touched, reached = rows.of("input"), rows.of("test_accuracy")
    touched = touched if len(touched) else rows.of("start")
    reached = reached[rows.value[reached] >= target]
    if not len(touched) or not len(reached):
        return None
    first = (rows.start[touched] + offsets_of(record, rows.rank[touched])).min()
    return float((rows.end[reached] + offsets_of(record, rows.rank[reached])).min() - first) / SECOND


def made_up(wanted: Wanted) -> MadeUp:
    """A launch that reaches its target after this time."""
    target, took = _target(wanted.case), possible(wanted.known)
    if target is None:
        raise ImpossibleValue("this data set has no target")
    return events(Event("input"), Event("test_accuracy", took, took, ranks=(0,), value=target))


def _target(case: AnyCase) -> float | None:
    """Test accuracy that counts as learned; None where the case has no data, or its data set no target."""
    if not isinstance(case, TrainCase) or case.dataset not in registry.names("dataset"):
        return None
    return case.plugin("dataset").target
