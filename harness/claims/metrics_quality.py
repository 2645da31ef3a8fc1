"""Time to quality of one launch, as MLPerf Training counts a run: from the first touch of the data to the first evaluation at the target."""

from __future__ import annotations

import pandas as pd

from harness.claims.launch import SECOND, clock_offsets
from harness.record.schema import Record
from harness.spec.case import TrainCase

TARGETS = {"digits": 0.95, "reversal": 0.95, "topics": 0.9}
"""Test accuracy that counts as learned, per data set. Synthetic data has none: nothing can be learned from it."""


def time_to_quality(record: Record, samples: pd.DataFrame) -> float | None:
    """Seconds from the first touch of the data on any rank, warm-up included, to the first evaluation at the target. The clock never pauses.

    None: did not converge, nothing was evaluated, or the data set has no target.
    """
    case = record.case
    target = TARGETS.get(case.data) if isinstance(case, TrainCase) else None
    touched, evaluated = samples[samples["event"] == "input"], samples[samples["event"] == "test_accuracy"]
    if target is None or touched.empty:
        return None
    reached = evaluated[evaluated["value"] >= target]
    if reached.empty:
        return None
    first = (touched["start_ns"] + clock_offsets(record, touched)).min()
    return float((reached["end_ns"] + clock_offsets(record, reached)).min() - first) / SECOND
