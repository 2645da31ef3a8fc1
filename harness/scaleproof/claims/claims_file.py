"""The form of claims.json, checked when it is written and when it is read."""

from __future__ import annotations

from typing import Any, Literal

from scaleproof.claims.claim_form import Attempt, Deviation, Direction, Form, Kind, Origin, Provenance, Validates, Value
from scaleproof.core.record_schema import Evidence

Verdict = Literal[
    "reproduced",
    "direction only",
    "not reproduced",
    "inconclusive",
    "not runnable here",
    "value not recovered",
    "unverified",
]
Standing = Literal["validated", "missed", "not validated here"]
STANDING_WORDS: dict[Standing, str] = {
    "validated": "validated",
    "missed": "validation missed",
    "not validated here": "not validated here",
}


class IntervalOut(Form):
    """An interval of claims.json; `coverage` is the attained one."""

    low: float
    high: float
    coverage: float
    method: str


class BaseOut(Form):
    """What a ratio or difference is taken against, in absolute terms."""

    select: dict[str, Any]
    value: float | None
    unit: str
    n: int


class ControlOut(Form):
    """What the negative control showed; `shows_effect` is None when it could not be judged."""

    statement: str
    ours: float | None
    interval: IntervalOut | None
    n: int
    shows_effect: bool | None


class Finding(Form):
    """What a claim of suite validation is worth to other suites: the launches it was judged on, and by how much it was
    missed."""

    form: Validates
    machine: str | None = None
    """None: no launch served it."""
    code: str = ""
    """Digest of the version that ran them."""
    latest: str = ""
    """When the last of them started, UTC."""
    judged_on: tuple[dict[str, Any], ...] = ()
    """Of each case: the fields `alike`, `up_to` and `down_to`."""
    missed_by: float | None = None
    """How far ours lies from what the rule accepts, in the claim's unit; None where it was not missed."""
    below: tuple[str, ...] = ()
    """Misses of the level of evidence that it was judged against."""


class Label(Form):
    """How far the level of evidence of a number was validated on its machine, and why so."""

    standing: Standing
    why: tuple[str, ...]

    @property
    def words(self) -> str:
        """For a reader."""
        return STANDING_WORDS[self.standing]


class ClaimResult(Form):
    """One object of claims.json: a claim at one level of evidence (None: nothing of ours serves it, or arithmetic
    alone)."""

    schema_version: Literal[1] = 1
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
    verdict: Verdict | None
    """None: shown, never judged (context rows, size ci)."""
    rule: str
    """How the verdict follows from the numbers, in words that can be checked."""
    reason: str
    runs: tuple[str, ...]
    experiment: str | None
    base: BaseOut | None
    provenance: Provenance | None
    """None for claims of our own."""
    gate: bool
    direction: Direction | None
    where: str | None
    source: str
    deviations: tuple[Deviation, ...]
    control: ControlOut | None
    noise_floor: float | None = None
    """By how much identical arms differ on the machine of the records, as a share; None: not measured, or the metric is
    no timing."""
    warnings: tuple[str, ...] = ()
    """What a reader should know of the launches: outliers (never removed), few launches, launches left out,
    oversubscription."""
    attempt: Attempt | None = None
    """None for arithmetic."""
    label: Label | None = None
    """Of times on emulated and simulated evidence: what suite validation says of it. Counts need none."""
    validates: Finding | None = None
    """Suite validation alone."""

    @property
    def lowered(self) -> bool:
        """Whether it stands on evidence whose validation was missed."""
        return self.label is not None and self.label.standing == "missed"

    def evidence_words(self, further: str = "") -> str:
        """The level of evidence with its label; `further` facts of the launches stand between them."""
        if self.evidence is None:
            return ""
        return ", ".join([self.evidence, *([further] if further else [])]) + (
            f" ({self.label.words})" if self.label else ""
        )


class ClaimsFile(Form):
    """results/claims/<suite>.<size>.json and reports/claims.json."""

    schema_version: Literal[1] = 1
    claims: tuple[ClaimResult, ...]
