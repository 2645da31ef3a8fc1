"""The forms of published.yaml and claims.yaml, checked when they are read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scaleproof.core.record_schema import Evidence

Kind = Literal["claim", "consistency", "context"]
Origin = Literal["paper", "own"]
Direction = Literal["higher", "lower"]
Provenance = Literal[
    "paper", "author_code", "secondary", "derived", "memory_high", "memory_medium", "memory_low", "not_recovered"
]
RuleName = Literal["within", "at_least", "at_most", "ordering", "ratio", "equal_to_tolerance", "monotone"]
Attempt = Literal["repeatability", "reproduction", "replication"]
"""ACM badges 1.1: our own claims on our own set-up; a paper's claim with the authors' code; a paper's claim with our
own implementation."""
DeviationKind = Literal["scale", "network", "hardware", "data", "software", "method"]
Value = float | int | None
_NEEDED = {
    "within": ("tolerance",),
    "at_least": ("value",),
    "at_most": ("value",),
    "ratio": ("low", "high"),
    "equal_to_tolerance": ("tolerance",),
    "monotone": ("along", "trend"),
}
_ONE_SIDED = ("at_least", "at_most", "ordering", "monotone")


class Form(BaseModel):
    """What all forms of claims have in common: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class PublishedRow(Form):
    """One published figure with its conditions `x`, its provenance, and whether it may decide a verdict (`gate`)."""

    id: str
    paper: str
    statement: str
    metric: str
    unit: str
    direction: Direction | None
    x: dict[str, Any]
    value: Value
    baseline: str | None
    where: str | None
    source: str
    provenance: Provenance
    gate: bool

    @model_validator(mode="after")
    def _recalled_rows_decide_nothing(self) -> PublishedRow:
        if self.gate and (self.provenance.startswith("memory") or self.provenance == "not_recovered"):
            raise ValueError(f"{self.id}: a row of provenance {self.provenance} cannot have gate true")
        return self


class Rule(Form):
    """How a claim is judged; what the fields mean is in docs/verdicts.md."""

    name: RuleName
    tolerance: Annotated[float, Field(ge=0)] | None = None
    relative: bool = False
    value: float | None = None
    low: float | None = None
    high: float | None = None
    one_sided: bool = False
    neutral: float | None = None
    along: str | None = Field(default=None, description="the field of the case that x is, for `monotone`")
    trend: Literal["rising", "falling"] | None = None
    strict: bool = Field(default=True, description="false: `monotone` accepts steps without a difference")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Rule:
        missing = [name for name in _NEEDED.get(self.name, ()) if getattr(self, name) is None]
        if self.name == "ratio" and self.one_sided:
            if len(missing) != 1:
                raise ValueError("a one-sided rule 'ratio' takes 'low' or 'high', one of them")
        elif missing:
            raise ValueError(f"rule {self.name!r} needs {missing[0]!r}")
        return self

    @property
    def sides(self) -> Literal["one-sided", "two-sided"]:
        """Whether values beyond the better end count against it."""
        return "one-sided" if self.one_sided or self.name in _ONE_SIDED else "two-sided"


class Deviation(Form):
    """How our experiment differs from the published one."""

    kind: DeviationKind
    text: str


class Control(Form):
    """A run that must not show the effect: the claim's metric over other cases."""

    statement: str
    select: dict[str, Any]
    against: dict[str, Any] | None = None


class Validates(Form):
    """What a claim of suite validation says about a level of evidence. It is about launches at that level whose case
    has the fields `where`, and not the fields `unless`. A miss lowers all of these launches; a claim that holds
    validates only launches like those that it was judged on."""

    what: str = Field(
        description="what is checked, in words; a launch is validated when each thing that is checked of its level is"
    )
    evidence: Literal["emulated", "simulated"]
    where: dict[str, Any] = {}
    unless: dict[str, Any] = {}
    alike: tuple[str, ...] = Field(default=(), description="fields in which a case must equal one that was judged")
    up_to: tuple[str, ...] = Field(default=(), description="fields in which it must not be larger than that")
    down_to: tuple[str, ...] = Field(default=(), description="fields in which it must not be smaller than that")


class ClaimForm(Form):
    """One entry of claims.yaml. A row of the paper has its statement, unit and direction from published.yaml; our own
    claims bring them."""

    id: str
    kind: Kind = "claim"
    origin: Origin = "paper"
    experiment: str | None = None
    metric: str | None = None
    select: dict[str, Any] = {}
    against: dict[str, Any] | None = None
    base_evidence: Evidence | None = Field(
        default=None,
        description="level of evidence at which `against` is taken, where that is another one: "
        "how far two levels are apart",
    )
    arms: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="for `ordering` of more than two: fields over `select`, in the order claimed, the best first",
    )
    over: tuple[str, ...] = Field(
        default=(),
        description="fields of the case whose true value is known as a range only: "
        "the verdict must be the same at every point of it that the plan has",
    )
    nbytes: int | None = Field(default=None, description="message size in bytes, for metrics per size")
    x: dict[str, Any] = Field(default={}, description="the arguments of a model metric")
    rule: Rule | None = None
    needs: str | None = None
    deviations: tuple[Deviation, ...] = ()
    control: Control | None = None
    statement: str | None = None
    unit: str | None = None
    direction: Direction | None = None
    validates: Validates | None = Field(
        default=None, description="suite validation alone: which launches of all suites its verdict labels"
    )
    attempt: Attempt | None = Field(
        default=None,
        description="only where it is not what follows from `origin`: `reproduction` for a paper's claim that is "
        "served with the authors' code",
    )

    @model_validator(mode="after")
    def _arms_fit(self) -> ClaimForm:
        ordered = self.rule is not None and self.rule.name == "ordering"
        if self.arms and (not ordered or self.against is not None or len(self.arms) < 2):
            raise ValueError(f"{self.id}: 'arms' are two or more, for rule 'ordering' without 'against'")
        if ordered and self.experiment is not None and not self.arms and self.against is None:
            raise ValueError(f"{self.id}: rule 'ordering' compares: give 'against' or 'arms'")
        if self.over and (self.arms or (self.rule is not None and self.rule.along is not None)):
            raise ValueError(
                f"{self.id}: 'over' judges a value or a ratio at every point of a range; leave 'arms' and 'along' out"
            )
        if self.rule is not None and self.rule.name == "monotone" and self.against is not None:
            raise ValueError(
                f"{self.id}: rule 'monotone' compares the selected cases with each other; leave 'against' out"
            )
        return self

    @model_validator(mode="after")
    def _can_validate(self) -> ClaimForm:
        if self.validates and (self.rule is None or self.rule.name in ("ordering", "monotone") or self.kind != "claim"):
            raise ValueError(f"{self.id}: what 'validates' is a claim whose rule has bounds, so that a miss has a size")
        return self

    @model_validator(mode="after")
    def _complete(self) -> ClaimForm:
        own = {"statement": self.statement, "unit": self.unit, "metric": self.metric, "rule": self.rule}
        if self.origin == "own" and (missing := [name for name, value in own.items() if value is None]):
            raise ValueError(f"{self.id}: a claim of our own needs {missing[0]!r}")
        if self.origin == "paper" and (
            repeated := [name for name in ("statement", "unit", "direction") if getattr(self, name) is not None]
        ):
            raise ValueError(f"{self.id}: {repeated[0]!r} of a paper's row stands in published.yaml; leave it out here")
        if self.kind == "claim" and self.metric is None and self.needs is None:
            raise ValueError(f"{self.id}: a claim without a metric says in 'needs' what is missing here")
        return self
