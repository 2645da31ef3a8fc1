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
    """
    case = record.case
    target = TARGETS.get(case.data) if isinstance(case, TrainCase) else None
    if target is None:
        return None
    rows = columns(record, samples)
    touched, reached = rows.of("input"), rows.of("test_accuracy")
    reached = reached[rows.value[reached] >= target]
    if not len(touched) or not len(reached):
        return None
    first = (rows.start[touched] + offsets_of(record, rows.rank[touched])).min()
    return float((rows.end[reached] + offsets_of(record, rows.rank[reached])).min() - first) / SECOND
