"""A launch's samples as plain arrays. A metric is asked of thousands of launches with a hundred samples each, where pandas takes a millisecond a step."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from harness.record.schema import Record

Result = TypeVar("Result")
_PLAIN = ("rank", "step", "warmup", "start_ns", "end_ns", "nbytes", "value")


def of_last_launch(function: Callable[[Record, pd.DataFrame], Result]) -> Callable[[Record, pd.DataFrame], Result]:
    """Remembers the answer for the launch asked last: one launch is asked for several metrics in a row. Answers are not to be changed."""
    last: list[Any] = [lambda: None, None, None]

    @functools.wraps(function)
    def remembered(record: Record, samples: pd.DataFrame) -> Result:
        if last[0]() is not samples or last[1] is not record:
            last[:] = weakref.ref(samples), record, function(record, samples)
        answer: Result = last[2]
        return answer

    return remembered


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of record.schema.SAMPLES, in their order; `codes` say which of `names` an event is."""

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
        """Which rows are of these events, warm-up included, as numbers of rows."""
        wanted = [self.names[event] for event in events if event in self.names]
        found = np.zeros(len(self.codes), bool)
        for code in wanted:
            found |= self.codes == code
        return np.flatnonzero(found)

    def timed(self, *events: str) -> np.ndarray:
        """Those outside the warm-up."""
        rows = self.of(*events)
        return rows[~self.warmup[rows]]


@of_last_launch
def columns(record: Record, samples: pd.DataFrame) -> Columns:
    """Of a launch's samples."""
    events = samples["event"]
    if isinstance(events.dtype, pd.CategoricalDtype):
        codes, names = events.cat.codes.to_numpy(), events.cat.categories
    else:
        codes, names = pd.factorize(events)
    rank, step, warmup, start, end, nbytes, value = (samples[name].to_numpy() for name in _PLAIN)
    known = {str(name): number for number, name in enumerate(names)}
    return Columns(rank, step, warmup.astype(bool), start, end, nbytes, value, codes, known)


def offsets_of(record: Record, ranks: np.ndarray) -> np.ndarray:
    """What to add to each row's times in ns to bring them to rank 0's clock: 0 where a launch has not measured it."""
    known = record.clock_offsets
    present, places = np.unique(ranks, return_inverse=True)
    return np.array([known.get(int(rank), 0) for rank in present], np.int64)[places]


def numbered(*keys: np.ndarray) -> np.ndarray:
    """One number for each combination of the keys' values, in their order: equal rows have equal numbers."""
    number = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values, places = np.unique(key, return_inverse=True)
        number = number * max(len(values), 1) + places
    return number


def place_in_group(group: np.ndarray) -> np.ndarray:
    """0, 1, ... within every run of equal numbers; equal ones stand together."""
    if not len(group):
        return np.empty(0, np.int64)
    opens = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    return np.arange(len(group)) - np.repeat(opens, np.diff([*opens, len(group)]))


def medians(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each group, ascending: its number, the median of its values, and how many they are."""
    order = np.lexsort((values, group))
    found, first, counts = np.unique(group[order], return_index=True, return_counts=True)
    ordered = values[order].astype(float)
    return found, (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2, counts


def largest(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each group, ascending: its number and its largest value."""
    order = np.lexsort((values, group))
    found, first, counts = np.unique(group[order], return_index=True, return_counts=True)
    return found, values[order][first + counts - 1]
