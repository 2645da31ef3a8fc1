"""Metrics of suites' own programs that have steps, such as rank programs."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record


def program_s(record: Record, samples: pd.DataFrame) -> float | None:
    """How long the timed steps of all ranks of a suite's own program take, in s.

    program_s = end of the last step of any rank - start of the first step of any rank, without warm-up steps

    Ranks may have different numbers of steps: workers of an asynchronous server, stages of a pipeline. So no step of a
    single rank stands for the program, but the time in which all of them were done does. Predictions and emulated
    launches of the same program are compared by it.
    """
    if record.case.program != "own" or not times_count(record):
        return None
    rows = columns(record, samples)
    steps = rows.timed("step")
    if not len(steps):
        return None
    return float(rows.end[steps].max() - rows.start[steps].min()) / SECOND


def loss_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest distance of a loss of a suite's own program from that of one process with the same samples, which rank 0
    trains after the timed region."""
    rows = columns(record, samples)
    found = rows.value[rows.of("loss_difference")]
    return float(found[0]) if len(found) else None
