"""Median durations of events, which several metrics of this suite use."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import timed

SECOND = 1e9


def median_s(samples: pd.DataFrame, event: str, nbytes: int | None = None) -> float | None:
    """Median duration of an event in s, warm-up excluded, of one message size where `nbytes` is set."""
    rows = timed(samples, event)
    if nbytes is not None:
        rows = rows[rows["nbytes"] == nbytes]
    return float((rows["end_ns"] - rows["start_ns"]).median()) / SECOND if len(rows) else None
