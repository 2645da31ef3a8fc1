"""The form of claims.json, checked when it is written and when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from scaleproof.claims.claim_form import Attempt, Deviation, Direction, Form, Kind, Origin, Provenance, Validates, Value
from scaleproof.claims.notes import Note
from scaleproof.claims.outcome import Outcome, Verdict
from scaleproof.core.atomic_write import write_form
from scaleproof.core.record_schema import Evidence
from scaleproof.stats.intervals import Method

Standing = Literal["validated", "missed", "not validated here"]
STANDING_TEXTS: dict[Standing, str] = {
    "validated": "validated",
    "missed": "validation missed",
    "not validated here": "not validated here",
}


SchemaVersion = Literal[1, 2, 3]
"""Version 2 has the facts of each outcome and note beside their sentences; files of version 1 have the sentences
alone. Version 3 has entries of kind `check`, whose verdicts are `holds` and `fails`, and the
verdict `not run at this size`."""


class IntervalOut(Form):
    """An interval of claims.json."""

    low: float
    high: float
    coverage: float = Field(description="the attained one")
    method: str = Field(description="how it was made, in words")
    made_by: Method | None = Field(default=None, description="how it was made; None in files of version 1")


class BaseOut(Form):
    """The base of a ratio or difference, in absolute terms."""

    select: dict[str, Any]
    value: float | None
    unit: str
    n: int


class ControlOut(Form):
    """The result of the negative control."""

    statement: str
    ours: float | None
    interval: IntervalOut | None
    n: int
    shows_effect: bool | None = Field(description="None: it could not be judged")


class Finding(Form):
    """What a claim of suite validation says about launches of other suites: the launches that it was judged on, and by
    how much it was missed."""

    form: Validates
    machine: str | None = Field(default=None, description="None: no launch served it")
    code: str = Field(default="", description="digest of the version that ran the launches")
    files: dict[str, str] = Field(default_factory=dict, description="the modules that the launches used (Code.files)")
    latest: str = Field(default="", description="when the last of them started, UTC")
    judged_on: tuple[dict[str, Any], ...] = Field(
        default=(), description="of each case: the fields `alike`, `up_to` and `down_to`"
    )
    missed_by: float | None = Field(
        default=None,
        description="how far ours lies from what the rule accepts, in the claim's unit; None where it was not missed",
    )
    below: tuple[str, ...] = Field(
        default=(), description="misses of the level of evidence that it was judged against, in words"
    )
    below_notes: tuple[Note, ...] = Field(default=(), description="the same as facts")


class Label(Form):
    """Whether the level of evidence of a number was validated on its machine, and why."""

    standing: Standing
    why: tuple[str, ...] = Field(description="in words")
    notes: tuple[Note, ...] = Field(default=(), description="the same as facts")

    @property
    def text(self) -> str:
        """The standing as it is shown."""
        return STANDING_TEXTS[self.standing]


class Reduction(Form):
    """A network that ran with less width or smaller images than the paper's."""

    workload: str
    image_side: int | None = Field(description="side of the images in pixels; None: the paper's")
    width: float = Field(description="share of every layer's width that was kept")
    factor: float = Field(description="FLOP per sample of the full network over those of the one that ran")


class ClaimResult(Form):
    """One object of claims.json: a claim at one level of evidence (None: nothing of ours serves it, or arithmetic
    alone)."""

    schema_version: SchemaVersion = 3
    id: str
    suite: str
    size: str
    kind: Kind
    origin: Origin
    statement: str
    metric: str | None
    published: Value
    ours: float | None
    interval: IntervalOut | None
    n: int | None
    unit: str
    evidence: Evidence | None
    evidence_details: tuple[str, ...] = Field(
        default=(),
        description="what a reader must know of the launches at this level of evidence: `soft-RoCE` (verbs on a device "
        "made of software), `dilation 4`; each combination that occurs; `then predicted by a model`: nobody ran it",
    )
    reduced: tuple[Reduction, ...] = Field(
        default=(),
        description="where a published value stands beside ours: the reduced networks that gave ours, which is then "
        "not comparable with it",
    )
    verdict: Verdict | None = Field(description="None: shown, never judged (context rows, size ci)")
    rule: str = Field(description="how the verdict follows from the numbers, in words that can be checked")
    outcome: Outcome | None = Field(
        default=None, description="the same as facts; None where nothing is judged, and in files of version 1"
    )
    reason: str = Field(description="what else decides or is missing, in words")
    reason_notes: tuple[Note, ...] = Field(default=(), description="the same as facts")
    runs: tuple[str, ...]
    campaigns: int | None = Field(
        default=None,
        description="calls of `scaleproof run` that made these launches; None: none behind it, or predictions",
    )
    experiment: str | None
    base: BaseOut | None
    provenance: Provenance | None = Field(description="None for claims of our own")
    gate: bool
    direction: Direction | None
    where: str | None
    source: str
    deviations: tuple[Deviation, ...]
    control: ControlOut | None
    noise_floor: float | None = Field(
        default=None,
        description="by how much identical arms differ on the machine of the records, as a share; "
        "None: not measured, or the metric is no timing",
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description="what a reader should know of the launches, in words: outliers (never removed), few launches, "
        "launches left out, oversubscription",
    )
    warning_notes: tuple[Note, ...] = Field(default=(), description="the same as facts")
    attempt: Attempt | None = Field(default=None, description="None for arithmetic")
    label: Label | None = Field(
        default=None,
        description="of times on emulated and simulated evidence: what suite validation says of it; counts need none",
    )
    validates: Finding | None = Field(default=None, description="suite validation alone")

    @property
    def lowered(self) -> bool:
        """Whether the validation of its evidence was missed."""
        return self.label is not None and self.label.standing == "missed"

    @property
    def evidence_text(self) -> str:
        """The level of evidence with the details of its launches and its label."""
        if self.evidence is None:
            return ""
        label = f" ({self.label.text})" if self.label else ""
        return ", ".join(filter(None, [self.evidence, " / ".join(self.evidence_details)])) + label

    @property
    def work_factor(self) -> str:
        """How many times the work per sample the full networks take; empty where none is reduced."""
        return work_factor_text(self.reduced)

    @property
    def reduced_text(self) -> str:
        """That ours is not comparable with the published value beside it; empty where it is."""
        return reduced_text(self.work_factor)


def work_factor_text(reduced: Iterable[Reduction]) -> str:
    """The least and the largest factor of these networks; empty without any."""
    factors = sorted({f"{each.factor:.3g}" for each in reduced}, key=float)
    return " to ".join(dict.fromkeys((factors[0], factors[-1]))) if factors else ""


def reduced_text(work_factor: str) -> str:
    """The mark of a value from reduced networks; empty without a factor."""
    if not work_factor:
        return ""
    return f"reduced, not comparable: the full network takes {work_factor} times the work per sample"


class ClaimsFile(Form):
    """results/claims/<suite>.<size>.json and reports/claims.json."""

    schema_version: SchemaVersion = 3
    claims: tuple[ClaimResult, ...]
    judged_by: dict[str, str] = Field(
        default_factory=dict, description="by suite: the version of the code and files that judged it (judging_version)"
    )


def write_claims(path: Path, results: Iterable[ClaimResult], judged_by: Mapping[str, str] | None = None) -> None:
    """Write a checked claims.json by one rename."""
    made = ClaimsFile(claims=tuple(results), judged_by=dict(judged_by or {}))
    write_form(path, ClaimsFile.model_validate(made.model_dump()))


def read_claims(path: Path) -> ClaimsFile:
    """A file of claims, checked; pydantic's ValidationError says what is wrong."""
    return ClaimsFile.model_validate_json(path.read_bytes())
