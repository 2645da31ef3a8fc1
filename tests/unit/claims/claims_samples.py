"""Records and samples as a launch leaves them, made by hand for tests of metrics and verdicts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_split import part_arrays
from scaleproof.core.record_schema import Check, Code, RankStatus, Record
from tests.short_form import case_from

MS = 1_000_000
"""Nanoseconds."""
TRAIN: dict[str, Any] = {
    "program": "train",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "ranks": 2,
    "transport": "gloo",
    "strategy": "sync_overlap",
    "workload": "cd_dnn",
    "minibatch": 8,
    "steps": 2,
}
SUITE_OF_A_TRAINING = """
suite: mine
title: t
experiments:
  speed:
    summary: s
    base: {program: train, strategy: sync_overlap, workload: cd_dnn, minibatch: 8, steps: 2, warmup: 0, ranks: 2}
"""
"""The beginning of a suite.yaml; arms and sizes follow."""
COLLECTIVE: dict[str, Any] = {
    "program": "collective",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "ranks": 4,
    "transport": "tcp",
    "collective": "ring",
    "sizes": [4000],
    "iterations": 2,
}

OF_SERVERS: dict[str, Any] = {
    **TRAIN,
    "ranks": 3,
    "transport": "tcp",
    "strategy": {"name": "server"},
    "workload": "dnn_digits",
    "data": "digits",
    "evaluate_every": 1,
}
"""Rank 0 serves, and ranks 1 and 2 train at their own pace, 4 samples a step."""
GOSSIP: dict[str, Any] = {**OF_SERVERS, "ranks": 2, "strategy": {"name": "gossip"}}
"""Both ranks train at their own pace, 4 samples a step."""


PROGRAM_CASES: tuple[dict[str, Any], ...] = (
    TRAIN,
    {**TRAIN, "ranks": 1, "transport": None, "strategy": "local_only"},
    {**TRAIN, "workload": "dnn_digits", "data": "digits", "evaluate_every": 1},
    OF_SERVERS,
    {
        "program": "transfer",
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "ranks": 2,
        "transport": "tcp",
        "sizes": [1 << 26],
    },
    {**COLLECTIVE, "sizes": [1 << 26]},
    {**TRAIN, "transport": "tcp", "strategy": "gossip", "workload": "dnn_digits", "data": "digits", "minibatch": 2},
    {"program": "own", "suite": "s", "experiment": "e", "arm": "a", "ranks": 2, "transport": "tcp", "entry": "own"},
    {
        **TRAIN,
        "transport": "tcp",
        "strategy": {"name": "pipeline", "stages": 2, "micro_batches": 2},
        "workload": "small_gpt",
        "minibatch": 4,
    },
)
"""A case of each program of the harness, of which every metric of the harness has a value in one."""


def arithmetic(metric: Metric, rows: Published | None = None, **x: Any) -> float:
    """The value of a metric that is arithmetic."""
    assert metric.model is not None
    found = metric.model(metric.x.model_validate(x, context=rows), rows or Published())
    assert isinstance(found, float | int)
    return found


def value(metric: Metric, launch: Launch) -> float | None:
    """The value that one launch gives by itself."""
    assert metric.launch is not None
    return metric.launch(launch.record, launch.samples)


def record(case: dict[str, Any], plan_index: int = 0, checks: list[Check] | None = None, **fields: Any) -> Record:
    """A record with status ok."""
    parsed = case_from(case)
    ranks = [
        RankStatus(rank=rank, pid=1, exit_code=0, signal=None, status="ok", step=1, operation="end")
        for rank in range(parsed.ranks)
    ]
    values: dict[str, Any] = {
        "launch": f"{parsed.case_id}-{plan_index}",
        "case_id": parsed.case_id,
        "case": parsed,
        "size": "smoke",
        "plan_index": plan_index,
        "seed": plan_index,
        "evidence": "measured",
        "oversubscribed": False,
        "status": "ok",
        "failure": None,
        "ranks": ranks,
        "checks": checks or [],
        "warnings": [],
        "code": Code(version="0", commit=None, dirty=None, digest="d"),
        "machine": "m",
        "environment": {},
        "transport": {},
        "started_at": "2026-01-01T00:00:00Z",
        "wall_s": 1.0,
        "command": [],
    }
    return Record(**{**values, **fields})


def samples(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Rows (rank, event, step, start ms, end ms[, nbytes[, value[, warmup]]])."""
    filled = [(*row, *(0, float("nan"), False)[len(row) - 5 :]) for row in rows]
    frame = pd.DataFrame(filled, columns=["rank", "event", "step", "start_ns", "end_ns", "nbytes", "value", "warmup"])
    frame["event"] = frame["event"].astype("category")
    frame["warmup"] = frame["warmup"].astype(bool)
    return frame.assign(
        start_ns=(frame["start_ns"] * MS).astype("int64"), end_ns=(frame["end_ns"] * MS).astype("int64")
    )


def step(
    rank: int, number: int, start: float, communication: tuple[float, float] | None = None, length: float = 100
) -> list[tuple[Any, ...]]:
    """A step of 100 ms: input 5, forward 25, backward 40, communication in the given intervals (from the step's start),
    update 10 at its end."""
    rows: list[tuple[Any, ...]] = [
        (rank, "step", number, start, start + length),
        (rank, "input", number, start, start + 5),
        (rank, "forward", number, start + 5, start + 30),
        (rank, "backward", number, start + 30, start + 70),
        (rank, "update", number, start + length - 10, start + length),
    ]
    if communication:
        rows.append((rank, "communication", number, start + communication[0], start + communication[1], 1000))
    return rows


def step_parts(launch: Record, rows: pd.DataFrame) -> pd.DataFrame:
    """The parts of each step as a frame."""
    return pd.DataFrame(part_arrays(launch, rows))
