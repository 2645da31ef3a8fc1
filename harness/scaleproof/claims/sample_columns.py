"""A launch's samples as plain arrays: metrics are computed for thousands of launches with a hundred samples each, where
each operation of pandas would take a millisecond."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from scaleproof.core.record_schema import Record

Result = TypeVar("Result")
_ROOM = 1 << 62
"""Largest number of combinations of keys."""
_PLAIN = ("rank", "step", "warmup", "start_ns", "end_ns", "nbytes", "value")


def of_last_launch(function: Callable[[Record, pd.DataFrame], Result]) -> Callable[[Record, pd.DataFrame], Result]:
    """Remembers the result for the last launch, since several metrics of one launch are computed in a row. Callers must
    not change the result."""
    last: list[Any] = [lambda: None, None, None]

    @functools.wraps(function)
    def remembered(record: Record, samples: pd.DataFrame) -> Result:
        if last[0]() is not samples or last[1] is not record:
            last[:] = weakref.ref(samples), record, function(record, samples)
        result: Result = last[2]
        return result

    return remembered


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of core.record_schema.SAMPLES, in their order. `codes`: the event of each row, as a value of `names`."""

    rank: np.ndarray
    step: np.ndarray
    warmup: np.ndarray
    start: np.ndarray
    end: np.ndarray
    nbytes: np.ndarray
    value: np.ndarray
    codes: np.ndarray
    names: dict[str, int]

    def of(self, *events: str) -> np.ndarray:
        """Indices of the rows of these events, warm-up included."""
        codes = [self.names[event] for event in events if event in self.names]
        selected = np.zeros(len(self.codes), bool)
        for code in codes:
            selected |= self.codes == code
        return np.flatnonzero(selected)

    def timed(self, *events: str) -> np.ndarray:
        """Indices of the rows of these events outside the warm-up."""
        rows = self.of(*events)
        return rows[~self.warmup[rows]]


@of_last_launch
def columns(record: Record, samples: pd.DataFrame) -> Columns:
    """The columns of a launch's samples."""
    events = samples["event"]
    if isinstance(events.dtype, pd.CategoricalDtype):
        codes, names = events.cat.codes.to_numpy(), events.cat.categories
    else:
        codes, names = pd.factorize(events)
    rank, step, warmup, start, end, nbytes, value = (samples[name].to_numpy() for name in _PLAIN)
    numbers = {str(name): number for number, name in enumerate(names)}
    return Columns(rank, step, warmup.astype(bool), start, end, nbytes, value, codes, numbers)


def offsets_of(record: Record, ranks: np.ndarray) -> np.ndarray:
    """What to add to each row's times in ns to bring them to rank 0's clock: 0 where a launch has not measured it."""
    by_rank = np.zeros(max(record.case.ranks, int(ranks.max(initial=0)) + 1), np.int64)
    for rank, offset in record.clock_offsets.items():
        by_rank[rank : rank + 1] = offset
    return by_rank[ranks]


def distinct(small: np.ndarray) -> int:
    """How many different values there are among small whole numbers from 0, such as ranks."""
    return int(np.count_nonzero(np.bincount(small)))


def numbered(*keys: np.ndarray) -> np.ndarray:
    """One number for each combination of the keys' values, in their order: equal rows have equal numbers. The numbers
    have gaps."""
    number, span = np.zeros(len(keys[0]), np.int64), 1
    for key in keys if len(number) else ():
        key = key.astype(np.int64) - int(key.min())
        width = int(key.max()) + 1
        if span * width > _ROOM:  # very different sizes; sorting them all is slow
            (number, span), (key, width) = _dense(number), _dense(key)
        number, span = number * width + key, span * width
    return number


def _dense(key: np.ndarray) -> tuple[np.ndarray, int]:
    values, indices = np.unique(key, return_inverse=True)
    return indices, len(values)


def index_in_group(group: np.ndarray) -> np.ndarray:
    """0, 1, ... within every run of equal numbers; equal numbers must be neighbours."""
    first, counts = _runs(group)
    return np.arange(len(group)) - np.repeat(first, counts)


def medians(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each group, ascending: its number, the median of its values, and their count."""
    order = np.lexsort((values, group))
    first, counts = _runs(group[order])
    ordered = values[order].astype(float)
    return group[order[first]], (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2, counts


def largest(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each group, ascending: its number and its largest value."""
    order = np.lexsort((values, group))
    first, counts = _runs(group[order])
    return group[order[first]], values[order[first + counts - 1]]


def largest_by_row(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row's group: its largest value and its number of rows."""
    order = np.lexsort((values, group))
    first, counts = _runs(group[order])
    top, together = np.empty_like(values), np.empty(len(group), np.int64)
    top[order], together[order] = np.repeat(values[order[first + counts - 1]], counts), np.repeat(counts, counts)
    return top, together


def _runs(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The start of every run of equal numbers, and its length."""
    if not len(group):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.concatenate(([0], np.flatnonzero(group[1:] != group[:-1]) + 1))
    return first, np.diff(first, append=len(group))
