"""The form of run.json and of samples.parquet, checked when written and when read."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from harness.spec.case import Case

SCHEMA_VERSION = 1
Status = Literal["ok", "failed", "not_runnable"]
FailureCode = Literal[
    "rank_killed", "rank_stopped", "rank_raised", "rank_exited", "rank_silent", "peer_lost", "transport_error", "rendezvous_timeout", "deadline",
    "start_failed", "check_failed", "diverged", "empty_result", "interrupted", "not_runnable", "disk_full", "wrong_interface",
]  # fmt: skip
Evidence = Literal["measured", "emulated", "simulated"]

SAMPLES = pa.schema([
    ("rank", pa.int16()), ("event", pa.dictionary(pa.int16(), pa.string())), ("step", pa.int32()), ("warmup", pa.bool_()),
    ("start_ns", pa.int64()), ("end_ns", pa.int64()), ("nbytes", pa.int64()), ("value", pa.float64()),
])  # fmt: skip
"""One row per event of a rank: start and end on CLOCK_MONOTONIC in ns, bytes asked, value (loss, accuracy) or NaN."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Failure(_Part):
    """Why a launch failed: code, the first rank that failed (-1: none in particular), what it was doing, and advice."""

    code: FailureCode
    rank: int
    message: str
    step: int
    operation: str
    advice: str


class RankStatus(_Part):
    """One rank's end: exit code or signal, last step and operation, thread and affinity facts."""

    rank: int
    pid: int
    exit_code: int | None
    signal: int | None
    status: Literal["ok", "failed", "killed"]
    code: FailureCode | None = None
    message: str = ""
    step: int
    operation: str
    facts: dict[str, Any] = Field(default_factory=dict)


class Check(_Part):
    """One correctness check of one rank."""

    rank: int
    name: str
    passed: bool
    detail: str


class Warning(_Part):
    """Something that a reader should know, with advice."""

    code: str
    message: str
    advice: str


class Code(_Part):
    """Which code ran: version, commit, whether the tree was dirty, digest of the rooms that measure."""

    version: str
    commit: str | None
    dirty: bool | None
    digest: str


class Record(_Part):
    """One launch."""

    schema_version: Literal[1] = 1
    launch: str
    case_id: str
    case: Case
    size: str
    plan_index: int
    seed: int
    evidence: Evidence
    oversubscribed: bool
    status: Status
    failure: Failure | None
    ranks: list[RankStatus]
    checks: list[Check]
    warnings: list[Warning]
    code: Code
    machine: str
    environment: dict[str, Any]
    transport: dict[str, Any]
    """Capabilities and traffic per rank, and interface byte counters before and after."""
    started_at: str
    """UTC, ISO 8601."""
    wall_s: float
    command: list[str]
    """What a person types to run this launch again."""
    artifacts: dict[str, str] = Field(default_factory=dict)
    """File name to SHA-256."""
