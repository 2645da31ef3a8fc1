"""What a metric gets to see of a launch: its record, its samples and, when asked, its trained parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from scaleproof.claims.sample_columns import columns, distinct, of_last_launch, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase

SECOND = 1e9
"""Nanoseconds."""


def _nothing() -> np.ndarray | None:
    return None


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch with status ok. `samples` has the columns of record.schema.SAMPLES."""

    record: Record
    samples: pd.DataFrame
    parameters: Callable[[], np.ndarray | None] = _nothing
    """The trained parameters (flat float32), None when the record kept none."""
    values: dict[tuple[str, int | None], float | None] = field(default_factory=dict, compare=False, repr=False)
    """Values that were computed before, by metric and message size: many claims need the same."""

    def value(self, name: str, nbytes: int | None, compute: Callable[[], float | None]) -> float | None:
        """A metric's value; computed once."""
        if (name, nbytes) not in self.values:
            self.values[name, nbytes] = compute()
        return self.values[name, nbytes]


def timed(samples: pd.DataFrame, *events: str) -> pd.DataFrame:
    """The rows of these events outside the warm-up."""
    return samples[samples["event"].isin(events) & ~samples["warmup"]]


def median_duration_s(rows: pd.DataFrame) -> float | None:
    """Median duration of these rows of a launch's samples in s; None without rows."""
    return float((rows["end_ns"] - rows["start_ns"]).median()) / SECOND if len(rows) else None


def clock_offsets(record: Record, rows: pd.DataFrame) -> pd.Series:
    """What to add to each row's times in ns to bring them to rank 0's clock: 0 where a launch has not measured it."""
    offsets = record.clock_offsets
    return rows["rank"].map(lambda rank: offsets.get(rank, 0)).astype("int64")


@of_last_launch
def wall_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Common wall time of the timed region in s: last end minus first start over all ranks, on one clock; None when a
    rank lacks one of them."""
    rows = columns(record, samples)
    starts, ends = rows.timed("start"), rows.timed("end")
    if any(distinct(rows.rank[marks]) < record.case.ranks for marks in (starts, ends)):
        return None
    last = (rows.end[ends] + offsets_of(record, rows.rank[ends])).max()
    return float(last - (rows.start[starts] + offsets_of(record, rows.rank[starts])).min()) / SECOND


def times_count(record: Record) -> bool:
    """Whether its times count: recording every message takes time of its own, so traced launches feed traces only;
    `excluded` ones feed nothing."""
    return record.case.tracing == "none" and not record.excluded


def of_workers(record: Record, samples: pd.DataFrame, chosen: np.ndarray) -> np.ndarray:
    """Of rows of the samples, by their indices, those of ranks that train: a server may have steps too."""
    case = record.case
    if not isinstance(case, TrainCase) or case.replicas is None:
        return chosen
    workers: np.ndarray = chosen[columns(record, samples).rank[chosen] >= case.ranks - case.workers]
    return workers
