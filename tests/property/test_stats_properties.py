"""Interval union against a count of unit cells; order statistics against their definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.stats.interval_union import merge, uncovered_length, union_length
from scaleproof.stats.intervals import median_interval

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def bounds(intervals: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([start for start, _ in intervals], dtype=int), np.array(
        [start + length for start, length in intervals], dtype=int
    )


def cells(intervals: list[tuple[int, int]]) -> set[int]:
    return {cell for start, length in intervals for cell in range(start, start + length)}


@given(pairs, pairs)
def test_union_and_difference_count_cells(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    assert union_length(*bounds(first)) == len(cells(first))
    assert uncovered_length(*bounds(first), *bounds(second)) == len(cells(first) - cells(second))


@given(pairs)
def test_merged_intervals_are_sorted_and_apart(intervals: list[tuple[int, int]]) -> None:
    starts, ends = merge(*bounds(intervals))
    assert np.all(starts[1:] > ends[:-1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=60))
def test_a_median_lies_in_its_interval_which_covers_at_least_95_percent(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert interval.low <= np.median(values) <= interval.high
    assert interval.coverage >= 0.95
