"""Clocks of ranks: 0 on one machine within a small uncertainty, a shifted clock is found with its sign, a rank that is
gone fails nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.launch.supervisor import run_plan
from scaleproof.rank import clock_offsets
from scaleproof.rank.clock_offsets import Reading, combined, compared, reading
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.record.store import Store
from scaleproof.record.trace import chrome_trace
from tests.integration.launches import launches, small_case
from tests.short_form import ring_case

THREE: Any = ring_case(ranks=3)


def test_on_one_machine_the_offset_is_zero_within_its_uncertainty() -> None:
    def body(context: RankContext) -> None:
        with compared(context):
            pass
        clock = context.facts["clock"]
        assert abs(clock["offset_ns"]) <= clock["uncertainty_ns"]
        assert clock["uncertainty_ns"] < 50_000_000
        assert "clock_error" not in context.facts

    assert run_ranks(THREE, body, 20) == [""] * 3


def test_a_shifted_clock_is_found_with_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = {0: 0, 1: 7_000_000_000, 2: -3_000_000}

    def body(context: RankContext) -> None:
        monkeypatch.setattr(clock_offsets, "now", lambda: now() + shift[context.rank])
        with compared(context):
            pass
        clock = context.facts["clock"]
        assert abs(clock["offset_ns"] + shift[context.rank]) <= clock["uncertainty_ns"]

    assert run_ranks(THREE, body, 20) == [""] * 3


def test_a_rank_that_is_gone_leaves_the_first_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_offsets, "LEAVE_S", 0.2)

    def body(context: RankContext) -> None:
        try:
            with compared(context):
                if context.rank == 1:
                    raise RuntimeError("gone")
        except RuntimeError:
            assert "clock" not in context.facts
            return
        if context.rank == 0:
            time.sleep(0.1)
        assert abs(context.facts["clock"]["offset_ns"]) <= context.facts["clock"]["uncertainty_ns"]

    assert run_ranks(THREE, body, 20) == [""] * 3


def test_a_launch_records_its_clocks_and_its_trace_is_on_one(tmp_path: Path) -> None:
    outcome = run_plan(launches([small_case(tracing="full")]), tmp_path, size="ci", deadline_s=30)
    store = Store(tmp_path)
    record, _ = store.load(outcome.launches[0])
    assert [clock.rank for clock in record.clocks] == [0, 1]
    assert all(abs(clock.offset_ns) <= clock.uncertainty_ns for clock in record.clocks)
    trace = chrome_trace(record, store.samples(record))
    assert trace["otherData"]["clocks_compared"] is True
    assert {"all_reduce", "reduce"} <= {event["name"] for event in trace["traceEvents"]}


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_true_offset_is_within_the_uncertainty_however_unequal_the_ways(
    offset: int, forth: int, pause: int, back: int
) -> None:
    measured = reading(0, forth + offset, forth + pause + offset, forth + pause + back)
    assert abs(measured.offset_ns - offset) <= measured.uncertainty_ns


@given(
    st.integers(-(10**9), 10**9),
    st.integers(-(10**6), 10**6),
    st.integers(-100, 100),
    st.integers(-100, 100),
    st.integers(0, 10),
)
def test_two_readings_bound_a_clock_that_drifts(first: int, drift: int, error: int, other: int, tenths: int) -> None:
    bound = combined(Reading(first + error, 100), Reading(first + drift + other, 100))
    assert abs(bound.offset_ns - (first + drift * tenths / 10)) <= bound.uncertainty_ns
