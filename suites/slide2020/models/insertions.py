"""The time in which tables take up all neurons."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import median_duration_s, timed, times_count
from scaleproof.claims.made_up import lasting
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record


def insertion_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time in which tables take up all neurons whose buckets are known, in s (suite slide2020).

    insertion_s = median insertion
    """
    return median_duration_s(timed(samples, "insertion")) if times_count(record) else None


def full_insertion_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time in which all neurons are hashed and taken up by tables, in s (suite slide2020).

    full_insertion_s = median step of programs/insertion.py
    """
    if record.case.value("entry") != "insertion" or not times_count(record):
        return None
    return median_duration_s(timed(samples, "step"))


METRICS = [
    Metric("insertion_s", "s", "lower", launch=insertion_s, made_up=lasting("insertion")),
    Metric("full_insertion_s", "s", "lower", launch=full_insertion_s, made_up=lasting("step")),
]
