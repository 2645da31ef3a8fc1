"""Per-launch metrics of `train`: throughput over the common wall time, first use, and how well it learned."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count, wall_s
from scaleproof.claims.metrics_split import step_split
from scaleproof.claims.sample_columns import (
    Columns,
    columns,
    largest,
    medians,
    numbered,
    of_last_launch,
    place_in_group,
)
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase


def throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s: those of all ranks over the common wall time, never one rank's times the number of ranks."""
    case = record.case
    if not isinstance(case, TrainCase) or case.compute == "none" or not times_count(record):
        return None  # steps that compute nothing train nothing
    wall = wall_s(record, samples)
    trained = len(columns(record, samples).timed("step")) * (case.minibatch // case.ranks)
    return trained / wall if wall and trained else None


@of_last_launch
def step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Median over steps of the slowest rank's step, in s."""
    rows = columns(record, samples)
    steps = rows.timed("step")
    if not len(steps) or not times_count(record):
        return None
    _, slowest = largest(rows.step[steps], rows.end[steps] - rows.start[steps])
    return float(np.median(slowest)) / SECOND


def forward_throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s of the forward pass alone; of one rank only, since ranks run their forward passes at different
    times."""
    case = record.case
    if not isinstance(case, TrainCase) or case.ranks != 1 or not times_count(record):
        return None
    split = step_split(record, samples)
    return case.minibatch / split["forward"] if split and split["forward"] else None


def first_step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What the first step costs above a steady one, in s: memory touched and buffers registered for the first time.
    Only where it is warm-up."""
    rows = columns(record, samples)
    first = rows.of("step")
    first = first[rows.warmup[first] & (rows.step[first] == 0)]
    steady = step_s(record, samples)
    return (
        float((rows.end[first] - rows.start[first]).max()) / SECOND - steady
        if len(first) and steady is not None
        else None
    )


def first_exchange_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What the first all-reduce of each bucket costs above its steady median, in s: summed over buckets, of the rank
    where that is most."""
    if not times_count(record):
        return None
    rows = columns(record, samples)
    calls = rows.of("communication")
    calls = calls[np.lexsort((rows.start[calls], rows.step[calls], rows.rank[calls]))]
    ranks, lengths, warmup = rows.rank[calls], rows.end[calls] - rows.start[calls], rows.warmup[calls]
    bucket = numbered(ranks, place_in_group(numbered(ranks, rows.step[calls])))
    first = np.flatnonzero(warmup & (rows.step[calls] == 0))
    known, steady, _ = medians(bucket[~warmup], lengths[~warmup])
    first = first[np.isin(bucket[first], known)]
    above = lengths[first] - steady[np.searchsorted(known, bucket[first])]
    return (
        max(float(above[ranks[first] == rank].sum()) for rank in np.unique(ranks[first])) / SECOND
        if len(above)
        else None
    )


def final_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean loss over the global minibatch of the last step."""
    rows = columns(record, samples)
    return _last(rows, rows.timed("loss"))


def test_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of test samples that the last evaluation got right."""
    rows = columns(record, samples)
    return _last(rows, rows.of("test_accuracy"))


def _last(rows: Columns, found: np.ndarray) -> float | None:
    """The value of the last step's first row."""
    return float(rows.value[found[rows.step[found].argmax()]]) if len(found) else None
