"""Interval union against a count of unit cells; order statistics against their definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.stats.interval_union import label
from scaleproof.stats.intervals import median_interval

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def bounds(intervals: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([start for start, _ in intervals], dtype=int), np.array(
        [start + length for start, length in intervals], dtype=int
    )


def cells(intervals: list[tuple[int, int]]) -> set[int]:
    return {cell for start, length in intervals for cell in range(start, start + length)}


@given(pairs, pairs, pairs)
def test_each_moment_inside_has_the_label_of_the_first_layer_that_covers_it(
    first: list[tuple[int, int]], second: list[tuple[int, int]], inside: list[tuple[int, int]]
) -> None:
    edges, labels = label([bounds(first), bounds(second)], bounds(inside))
    lengths = {name: int(np.diff(edges)[labels == name].sum()) if len(labels) else 0 for name in (0, 1, 2)}
    within = cells(inside)
    assert lengths == {
        0: len(within & cells(first)),
        1: len(within & cells(second) - cells(first)),
        2: len(within - cells(first) - cells(second)),
    }


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=60))
def test_a_median_lies_in_its_interval_which_covers_at_least_95_percent(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert interval.low <= np.median(values) <= interval.high
    assert interval.coverage >= 0.95
