"""Median durations of events, which several metrics of this suite use."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import timed, times_count
from scaleproof.core.record_schema import Record

SECOND = 1e9


def median_s(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    """Median duration of an event in s, warm-up excluded; None without such events or where times do not count."""
    rows = timed(samples, event)
    return float((rows["end_ns"] - rows["start_ns"]).median()) / SECOND if len(rows) and times_count(record) else None
