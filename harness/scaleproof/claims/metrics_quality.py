"""Time to quality of one launch, as MLPerf Training counts a run: from the first touch of the data to the first
evaluation at the target."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import SECOND
from scaleproof.claims.sample_columns import columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase

TARGETS = {"digits": 0.95, "reversal": 0.95, "topics": 0.9}
"""Test accuracy that counts as learned, per data set. Synthetic data has none: nothing can be learned from it."""


def time_to_quality(record: Record, samples: pd.DataFrame) -> float | None:
    """Seconds from the first touch of the data on any rank, warm-up included, to the first evaluation at the target.
    The clock never pauses.

    None: did not converge, nothing was evaluated, or the data set has no target.

    time_to_quality = time of the first evaluation at the target - start of the first batch on any rank

    The target is a test accuracy per data set: 0.95 for digits and reversal, 0.9 for topics
    ([workloads](../workloads.md)); synthetic data has none. The clock never pauses: warm-up steps and earlier
    evaluations are in it. A launch that never reaches the target has no value: it did not converge. The resolution is
    `evaluate_every` steps, so that a difference of less than that many steps cannot be seen. The moment is the start
    of that evaluation, whose own duration is left out.

    MLPerf scores several launches with different seeds by an olympic mean with at most one that did not converge;
    `harness/scaleproof/stats/time_to_quality.py` does that, see [statistics](../statistics.md).
    """
    case = record.case
    target = TARGETS.get(case.value("workload.data")) if isinstance(case, TrainCase) else None
    if target is None:
        return None
    rows = columns(record, samples)
    touched, reached = rows.of("input"), rows.of("test_accuracy")
    reached = reached[rows.value[reached] >= target]
    if not len(touched) or not len(reached):
        return None
    first = (rows.start[touched] + offsets_of(record, rows.rank[touched])).min()
    return float((rows.end[reached] + offsets_of(record, rows.rank[reached])).min() - first) / SECOND
