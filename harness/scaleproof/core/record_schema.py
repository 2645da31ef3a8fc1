"""The form of run.json and of samples.parquet, checked when written and when read."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from scaleproof.core.campaign import InCampaign
from scaleproof.core.evidence_marks import EXCLUDING, LINK, SOFT_ROCE, TRAJECTORY, soft_roce
from scaleproof.core.node_schema import Placement, RecordPart, Sniff
from scaleproof.core.stall_schema import Stall
from scaleproof.spec.case import TrainCase
from scaleproof.spec.emulated import emulated, true_times
from scaleproof.spec.evidence import Evidence as Evidence
from scaleproof.spec.evidence import software_device
from scaleproof.spec.launch_kind import LaunchKind, kind_of
from scaleproof.spec.recorded_case import Case

SCHEMA_VERSION = 3
"""Rises when a record of the version before can no longer be read. Version 3: options nested in the case, new case ids.
Fields that came later have a default, so that records without them stay readable: Failure.node and .peer,
Failure.requirement, PreflightCheck.node, Stall.reason and .path, RankDoing.no_stack, InCampaign.campaign,
.campaign_id and .replaces."""
EARLIER_SCHEMA_VERSION = 2
"""Of Scaleproof 0.1; `scaleproof results migrate` converts such records."""
Status = Literal["ok", "failed", "not_runnable"]
FailureCode = Literal[
    "rank_killed",
    "rank_stopped",
    "rank_raised",
    "rank_exited",
    "rank_silent",
    "peer_lost",
    "transport_error",
    "rendezvous_timeout",
    "deadline",
    "start_failed",
    "check_failed",
    "diverged",
    "empty_result",
    "interrupted",
    "not_runnable",
    "disk_full",
    "wrong_interface",
    "stalled",
    "preflight",
    "bad_input",
    "impossible_value",
    "node_lost",
    "device_missing",
    "memlock",
    "remote_access",
    "region_exhausted",
    "message_too_large",
    "queue_overflow",
]
SAMPLES = pa.schema(
    [
        ("rank", pa.int16()),
        ("event", pa.dictionary(pa.int16(), pa.string())),
        ("step", pa.int32()),
        ("warmup", pa.bool_()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("nbytes", pa.int64()),
        ("value", pa.float64()),
    ]
)
"""One row per event of a rank: start and end on CLOCK_MONOTONIC in ns, bytes asked, value (loss, accuracy) or NaN."""


class Failure(RecordPart):
    """Why a launch failed. What code decides by has a field of its own: `message` and `advice` are for people, and no
    code reads them."""

    code: FailureCode
    rank: int = Field(description="the first rank that failed; -1: none in particular")
    message: str = Field(description="what happened, for people")
    step: int = Field(description="the step in which that rank was; -1: before the first one")
    operation: str = Field(description="what that rank was doing; empty: not known")
    advice: str = Field(description="what to do about it, for people")
    node: str = Field("", description="the node of an allocation that failed, by its name; empty: none in particular")
    peer: int = Field(-1, description="the rank that the failed rank could not reach any more; -1: none, or not known")
    requirement: str = Field(
        "",
        description="of a launch that is not runnable here: the requirement that is not met, such as `launcher mpich`",
    )


class RankStatus(RecordPart):
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


class Check(RecordPart):
    """One correctness check of one rank."""

    rank: int
    name: str
    passed: bool
    detail: str


class Warning(RecordPart):
    """Something that a reader should know, with advice."""

    code: str
    message: str
    advice: str


class Code(RecordPart):
    """Which code ran. `commit` and `dirty` are None outside a git checkout."""

    version: str
    commit: str | None
    dirty: bool | None = Field(description="the checkout had uncommitted changes")
    digest: str = Field(description="of everything that can run inside a launch: names the version of the code")
    files: dict[str, str] = Field(
        default_factory=dict,
        description="the modules that this launch used, each with the start of its SHA-256 (record/used_code.py)",
    )

    @property
    def used(self) -> str:
        """One digest of `files`: launches that used the same code have the same. A record of an earlier version, which
        names no files, has that of the whole code."""
        if not self.files:
            return self.digest
        text = "".join(f"{name} {content}\n" for name, content in sorted(self.files.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class PreflightCheck(RecordPart):
    """One thing that is checked before the ranks measure."""

    code: str
    passed: bool | None = Field(description="None: it could not be checked here, and `message` says why")
    message: str
    advice: str = ""
    node: str = Field("", description="the node of an allocation that failed the check; empty: none in particular")


class RankNetwork(RecordPart):
    """One rank's namespace around its timed region: what it asked the transport to move, and what each interface moved
    (bytes and packets, both ways)."""

    rank: int
    namespace: str = Field(description="inode of its network namespace: ranks with the same one share counters")
    asked_bytes: int
    before: dict[str, dict[str, int]]
    after: dict[str, dict[str, int]]


class InputCheck(RecordPart):
    """One check of a data set before timing (D1 to D12 of docs/inputs.md): a number, its bound in words, and the
    outcome."""

    check: str
    dataset: str
    name: str
    value: float | str | None
    bound: str
    outcome: Literal["pass", "warn", "fail", "not applicable"]
    detail: str = ""


class Clock(RecordPart):
    """A rank's monotonic clock against rank 0's: add `offset_ns` to bring its times to rank 0's; true within
    `uncertainty_ns`."""

    rank: int
    offset_ns: int
    uncertainty_ns: int


class Record(InCampaign):
    """One launch."""

    schema_version: Literal[3] = 3
    launch: str
    case_id: str
    case: Case
    size: str
    seed: int
    evidence: Evidence
    oversubscribed: bool
    shared_cores: bool = Field(
        False,
        description="there is a core for every compute thread, but communication threads or servers share them",
    )
    status: Status
    failure: Failure | None
    ranks: list[RankStatus]
    checks: list[Check]
    warnings: list[Warning]
    code: Code
    machine: str
    environment: dict[str, Any]
    transport: dict[str, Any] = Field(
        description="capabilities and traffic per rank, and interface byte counters before and after"
    )
    preflight: list[PreflightCheck] = Field(default_factory=list)
    network: list[RankNetwork] = Field(default_factory=list)
    clocks: list[Clock] = Field(default_factory=list)
    inputs: list[InputCheck] = Field(default_factory=list)
    stall: Stall | None = None
    placement: Placement | None = Field(
        None, description="None: all ranks on this machine, or on a fabric that the launch made itself"
    )
    sniff: Sniff | None = Field(None, description="figures of its nodes before the experiment; None: not measured")
    started_at: str = Field(description="UTC, ISO 8601")
    wall_s: float = Field(description="s: of its imports, and from the start of its ranks to the end of its processes")
    command: list[str] = Field(description="what a person types to run this launch again")
    artifacts: dict[str, str] = Field(default_factory=dict, description="file name to SHA-256")

    @property
    def marks(self) -> tuple[str, ...]:
        """Words on the cores of the launch that a reader of its times should see."""
        marks = {"oversubscribed": self.oversubscribed, "shared cores": self.shared_cores}
        return tuple(mark for mark, is_set in marks.items() if is_set)

    @property
    def kind(self) -> LaunchKind | None:
        """The kind of launch, which noise floors belong to; None for a prediction."""
        return kind_of(self.case, self.shared_cores)

    @property
    def trajectory(self) -> bool:
        """Whether what it learned was computed with real gradients, at moments that are simulated."""
        case = self.case
        if self.evidence != "simulated" or not isinstance(case, TrainCase):
            return False
        return case.compute == "real" and case.replicas is not None

    @property
    def sampled(self) -> bool:
        """Whether a simulated launch is one of a sample, with a seed of its own: its trajectory is computed, or
        its data are drawn."""
        return self.trajectory or (self.evidence == "simulated" and bool(self.case.value("drawn", False)))

    @property
    def evidence_text(self) -> str:
        """The evidence and its details, for a reader."""
        return ", ".join([self.evidence, *self.evidence_details])

    @property
    def evidence_details(self) -> tuple[str, ...]:
        """What a reader must know of the evidence: soft-RoCE, a trajectory, what was dilated and shrunk, whether its
        links gave what was set, why its times do not count."""
        soft = any(software_device(rank.facts) for rank in self.ranks)
        details = [SOFT_ROCE] if soft or soft_roce(self.case.fabric, self.case.transport) else []
        details += [TRAJECTORY] if self.trajectory else []
        if emulated(self.case):
            factors = {"dilation": self.case.dilation, "shrink": self.case.shrink}
            details += [f"{name} {value:g}" for name, value in factors.items() if value != 1]
        if any(warning.code == LINK for warning in self.warnings):
            details.append("links missed")
        if self.excluded:
            details.append(f"excluded: {self.excluded}")
        return tuple(details)

    @property
    def excluded(self) -> str:
        """The warning for which none of its times counts in any metric; empty where they do."""
        return next((warning.code for warning in self.warnings if warning.code in EXCLUDING), "")

    @property
    def clock_offsets(self) -> dict[int, int]:
        """By rank, what to add to its samples' times (ns) to bring them to rank 0's clock, in the time that the samples
        are in."""
        offsets = true_times(self.case, np.array([clock.offset_ns for clock in self.clocks], np.int64))
        return dict(zip([clock.rank for clock in self.clocks], offsets.tolist(), strict=True))
