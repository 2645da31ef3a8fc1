"""The split of a step against a count of single milliseconds: parts add up and none is negative, also when events
overlap, reach beyond the step or occur twice."""

from __future__ import annotations

from typing import Any

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.claims.metrics_split import MAIN, PARTS
from tests.unit.claims.claims_samples import MS, TRAIN, record, samples, step_parts

NAMES = (*MAIN, "communication", "wait", "queue")
LENGTH = 40
"""Milliseconds of a step; the next one starts with a gap of 5."""

spans = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from(NAMES), st.integers(0, 1), st.integers(-5, LENGTH), st.integers(0, 20)
    ),
    max_size=25,
)


def launch(events: list[tuple[int, str, int, int, int]]) -> pd.DataFrame:
    """Two ranks, two steps, and events (rank, name, step, start after the step's, length) of any shape."""
    rows: list[tuple[Any, ...]] = [
        (rank, "step", step, 45 * step, 45 * step + LENGTH) for rank in range(2) for step in range(2)
    ]
    rows += [
        (rank, name, step, 45 * step + start, 45 * step + start + length) for rank, name, step, start, length in events
    ]
    return samples(*rows)


def counted(rows: pd.DataFrame, rank: int, step: int, *names: str) -> int:
    """Milliseconds of the step in which at least one of the events runs. Events of the other step count where they
    reach into this one."""
    mine = rows[(rows["rank"] == rank) & rows["event"].isin(names)]
    inside = range(45 * step, 45 * step + LENGTH)
    return sum(
        any(start <= at * MS < end for start, end in zip(mine["start_ns"], mine["end_ns"], strict=True))
        for at in inside
    )


@settings(max_examples=60)
@given(spans)
def test_parts_add_up_to_the_step_and_none_is_negative(events: list[tuple[int, str, int, int, int]]) -> None:
    rows = launch(events)
    table = step_parts(record(TRAIN), rows)
    assert (table[list(PARTS)] >= 0).all(axis=None)
    assert (table[list(PARTS)].sum(axis=1) == LENGTH * MS).all()
    for row in table.itertuples():
        explained = counted(rows, row.rank, row.number, *MAIN, "communication", "wait")
        assert row.other == (LENGTH - explained) * MS
        assert row.exposed_transfer + row.imbalance == (explained - counted(rows, row.rank, row.number, *MAIN)) * MS
        assert row.forward == counted(rows, row.rank, row.number, "forward") * MS


@settings(max_examples=40)
@given(spans)
def test_a_duplicated_event_counts_once(events: list[tuple[int, str, int, int, int]]) -> None:
    plain = [
        event for event in events if event[1] not in ("communication", "queue")
    ]  # a second all-reduce is another bucket
    once, twice = (step_parts(record(TRAIN), launch(rows)) for rows in (plain, plain + plain))
    pd.testing.assert_frame_equal(once, twice)
