"""Times of calls after a barrier and in a row, from the moments of two ranks."""

from __future__ import annotations

from benchmarks.test_barriers import Pair, after_barrier, in_a_row

MS = 1_000_000


def test_a_call_after_a_barrier_takes_as_long_as_on_its_slower_rank() -> None:
    one, other = [(0, 3 * MS), (10 * MS, 14 * MS)], [(0, 5 * MS), (10 * MS, 12 * MS)]
    assert after_barrier(one, other) == 0.0045


def test_waiting_for_a_rank_that_is_late_counts_once_in_a_row() -> None:
    """One rank enters each call 2 ms before the other, which makes calls of 4 ms without a pause."""
    one = [(0, 4 * MS), (4 * MS, 8 * MS), (6 * MS, 12 * MS), (10 * MS, 16 * MS)]
    other = [(0, 4 * MS), (4 * MS, 8 * MS), (8 * MS, 12 * MS), (12 * MS, 16 * MS)]
    assert in_a_row(one, other) == 0.004


def test_a_ratio_above_one_says_that_calls_after_a_barrier_are_slower() -> None:
    assert Pair(after_barrier=0.006, in_a_row=0.004).ratio == 1.5
