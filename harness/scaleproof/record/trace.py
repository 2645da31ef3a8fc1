"""One launch in the trace-event format that Perfetto and Chromium open: a process per rank, a thread per kind of event,
all times on rank 0's clock."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from scaleproof.core.record_schema import Clock, Record

MICROSECOND = 1000
"""Nanoseconds."""
LANES = {
    "communication": "communication",
    "queue": "queue",
    "send": "messages",
    "receive": "messages",
    "receive_reduce": "messages",
    "wait_for": "messages",
    "pull": "messages",
    "push": "messages",
    "reduce": "messages",
    "stage_in": "messages",
    "stage_out": "messages",
}
"""Kind of thread on which an event is shown; all other events are shown on `main`."""
COUNTERS = ("loss", "test_accuracy")
THREADS = 1000
"""Thread numbers per rank: viewers need numbers that are unique over all processes."""


def chrome_trace(record: Record, samples: pa.Table) -> dict[str, Any]:
    """The trace object: times in µs since the launch's first event, durations exact to 1 ns. Clock offsets are
    applied; `otherData` has their uncertainties."""
    rows = samples.to_pandas()
    clocks = {clock.rank: clock for clock in record.clocks}
    offset = rows["rank"].map(lambda rank: record.clock_offsets.get(rank, 0)).astype("int64")
    rows = rows.assign(start_ns=rows["start_ns"] + offset, end_ns=rows["end_ns"] + offset)
    zero = int(rows["start_ns"].min()) if len(rows) else 0
    rows = rows.assign(start_ns=rows["start_ns"] - zero, end_ns=rows["end_ns"] - zero)
    events: list[dict[str, Any]] = []
    for rank, pid in enumerate(_pids(record)):
        events += _rank_events(rank, pid, rows[rows["rank"] == rank], _bound(rank, record, clocks))
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": _other(record, clocks, zero)}


def _pids(record: Record) -> list[int]:
    """Process number of each rank; numbers from 1 if they are unknown or not unique. Viewers use 0 for the kernel."""
    pids = [status.pid for status in record.ranks]
    return pids if len(set(pids)) == record.case.ranks and min(pids) > 0 else list(range(1, record.case.ranks + 1))


def _bound(rank: int, record: Record, clocks: dict[int, Clock]) -> str:
    if rank in clocks:
        return f"clock {clocks[rank].offset_ns:+d} ns against rank 0, true within {clocks[rank].uncertainty_ns} ns"
    return "the only clock" if record.case.ranks == 1 else "clock not compared"


def _other(record: Record, clocks: dict[int, Clock], zero: int) -> dict[str, Any]:
    case = record.case
    return {
        "launch": record.launch,
        "case": record.case_id,
        "suite": case.suite,
        "experiment": case.experiment,
        "arm": case.arm,
        "tracing": case.tracing,
        "dilation": case.dilation,
        "shrink": case.shrink,
        "clock": "CLOCK_MONOTONIC of rank 0",
        "zero_ns": zero,
        "clocks": [clock.model_dump() for clock in clocks.values()],
        "clocks_compared": bool(clocks),
    }


def _rank_events(rank: int, pid: int, rows: pd.DataFrame, bound: str) -> list[dict[str, Any]]:
    first = (rank + 1) * THREADS
    metadata: dict[str, dict[str, Any]] = {
        "process_name": {"name": f"rank {rank}"},
        "process_labels": {"labels": bound},
        "process_sort_index": {"sort_index": rank},
    }
    events = [_name(kind, pid, first, **arguments) for kind, arguments in metadata.items()]
    names: dict[str, int] = {}
    kinds = rows["event"].astype(str).map(lambda event: LANES.get(event, "main"))
    for kind in ("main", "communication", "queue", "messages"):
        rows_of_kind = rows[kinds == kind]
        lanes: list[list[int]] = []
        for row in rows_of_kind.sort_values(["start_ns", "end_ns"], ascending=[True, False]).to_dict("records"):
            lane = _lane(lanes, row["start_ns"], row["end_ns"])
            thread = names.setdefault(f"{kind} {lane + 1}" if lane else kind, first + len(names))
            events += _events(row, pid, thread)
    for index, (name, thread) in enumerate(names.items()):
        events += [
            _name("thread_name", pid, thread, name=name),
            _name("thread_sort_index", pid, thread, sort_index=index),
        ]
    return events


def _lane(lanes: list[list[int]], start: int, end: int) -> int:
    """The first lane in which the interval lies beside or inside the open intervals, since intervals of one thread must
    nest. `lanes` has the ends of the open intervals."""
    for number, open_ends in enumerate(lanes):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if not open_ends or end <= open_ends[-1]:
            open_ends.append(end)
            return number
    lanes.append([end])
    return len(lanes) - 1


def _events(row: dict[str, Any], pid: int, tid: int) -> Iterator[dict[str, Any]]:
    name, value = str(row["event"]), float(row["value"])
    at = {
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": row["start_ns"] / MICROSECOND,
        "cat": "warmup" if row["warmup"] else "timed",
    }
    details: dict[str, Any] = {"step": int(row["step"])}
    if name in COUNTERS:
        yield at | {"ph": "C", "args": {name: value}}
        return
    if row["nbytes"]:
        details["nbytes"] = int(row["nbytes"])
    if not math.isnan(value):
        details["peer" if LANES.get(name) == "messages" else "value"] = int(value) if value.is_integer() else value
    if row["start_ns"] == row["end_ns"]:
        yield at | {"ph": "i", "s": "t", "args": details}
    else:
        yield at | {"ph": "X", "dur": (row["end_ns"] - row["start_ns"]) / MICROSECOND, "args": details}


def _name(kind: str, pid: int, tid: int, **arguments: Any) -> dict[str, Any]:
    """A metadata event."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": arguments}
