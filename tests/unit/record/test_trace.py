"""A launch as trace events: the format's rules, one clock, intervals of a thread nest."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.cli import main
from scaleproof.core.record_schema import SAMPLES, Clock
from scaleproof.record.trace import chrome_trace
from tests.unit import records
from tests.unit.claims.claims_samples import MS, TRAIN, record, samples, step

NAN = float("nan")
NEEDS = {"X": {"ts", "dur"}, "i": {"ts", "s"}, "C": {"ts"}, "M": {"args"}}
"""Fields that the trace-event format asks of each phase, beside name, ph, pid and tid."""


def trace_of(*rows: tuple[Any, ...], **fields: Any) -> dict[str, Any]:
    return chrome_trace(
        record(TRAIN, **fields),
        pa.Table.from_pandas(samples(*rows), preserve_index=False).select(SAMPLES.names).cast(SAMPLES),
    )


def two_ranks() -> list[tuple[Any, ...]]:
    rows = [row for rank in range(2) for row in step(rank, 0, 1000 * rank, (50, 85))]
    rows += [(rank, "queue", 0, 1000 * rank + 40, 1000 * rank + 50, 1000) for rank in range(2)]
    rows += [
        (0, "send", 0, 50, 70, 500, 1.0),
        (0, "receive", 0, 55, 80, 500, 1.0),
        (0, "start", 0, 0, 0),
        (0, "loss", 0, 100, 100, 0, 2.5),
    ]
    return [*rows, (0, "step", -1, -200, -100, 0, NAN, True)]


def assert_valid(trace: dict[str, Any]) -> None:
    """Assert the rules of the format, and that intervals of one thread nest."""
    json.loads(json.dumps(trace, allow_nan=False))
    threads: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    owners: dict[int, int] = {}
    for event in trace["traceEvents"]:
        assert {"name", "ph", "pid", "tid"} | NEEDS[event["ph"]] <= set(event)
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["pid"] > 0
        assert owners.setdefault(event["tid"], event["pid"]) == event["pid"], "a thread belongs to one process"
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            # Whole nanoseconds, so that rounding does not split one moment into two.
            threads[event["pid"], event["tid"]].append(
                (round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000))
            )
        if event["ph"] == "i":
            assert event["s"] in "gpt"
    named = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert set(threads) <= named
    for intervals in threads.values():
        open_ends: list[float] = []
        for start, end in intervals:  # in the order written, which viewers take for the order of opening
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)
        assert [start for start, _ in intervals] == sorted(start for start, _ in intervals)


def test_a_launch_becomes_a_valid_trace_with_a_process_per_rank() -> None:
    trace = trace_of(*two_ranks())
    assert_valid(trace)
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert names == ["rank 0", "rank 1"]
    threads = {
        event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name" and event["pid"] == 1
    }
    assert threads == {"main", "communication", "queue", "messages", "messages 2"}, (
        "two messages that overlap lie on two threads"
    )


def test_times_are_those_of_rank_0s_clock_in_microseconds() -> None:
    clocks = [Clock(rank=0, offset_ns=0, uncertainty_ns=0), Clock(rank=1, offset_ns=-1000 * MS, uncertainty_ns=77)]
    trace = trace_of(*two_ranks(), clocks=clocks)
    steps = {
        event["pid"]: event for event in trace["traceEvents"] if event["name"] == "step" and event["cat"] == "timed"
    }
    assert [(event["ts"], event["dur"]) for event in steps.values()] == [(200_000, 100_000)] * 2
    assert trace["otherData"]["clocks"][1] == {"rank": 1, "offset_ns": -1000 * MS, "uncertainty_ns": 77}
    labels = [event["args"]["labels"] for event in trace["traceEvents"] if event["name"] == "process_labels"]
    assert labels[1] == "clock -1000000000 ns against rank 0, true within 77 ns"


def test_trace_details_hold_bytes_peer_and_warm_up() -> None:
    events = trace_of(*two_ranks())["traceEvents"]
    assert [event["args"] for event in events if event["name"] == "send"] == [{"step": 0, "nbytes": 500, "peer": 1}]
    assert [event["args"] for event in events if event["ph"] == "C"] == [{"loss": 2.5}]
    assert [event["args"] for event in events if event["cat" if "cat" in event else "ph"] == "warmup"] == [{"step": -1}]


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(["send", "queue", "forward", "own"]),
            st.integers(0, 30),
            st.integers(0, 15),
        ),
        max_size=30,
    )
)
def test_overlapping_events_give_a_valid_trace(events: list[tuple[int, str, int, int]]) -> None:
    trace = trace_of(*((rank, name, 0, start, start + length) for rank, name, start, length in events))
    assert_valid(trace)
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == sum(length > 0 for *_, length in events)


def test_the_command_writes_one_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records.commit(tmp_path, records.record("abc123"))
    target = tmp_path / "new" / "trace.json"
    assert main(["trace", "abc", "-o", str(target), "--results", str(tmp_path)]) == 0
    assert_valid(json.loads(target.read_text()))
    assert "events of 2 ranks, without messages" in capsys.readouterr().out
    assert main(["trace", "nothing", "-o", str(target), "--results", str(tmp_path)]) == 2
