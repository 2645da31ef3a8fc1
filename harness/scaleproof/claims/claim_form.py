"""The forms of published.yaml and claims.yaml, checked when they are read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scaleproof.core.record_schema import Evidence

Kind = Literal["claim", "check", "consistency", "context"]
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
ORDERS = ("ordering", "monotone")
"""Rules about the order of arms: they have no number of their own."""
_ONE_SIDED = ("at_least", "at_most", *ORDERS)


class Form(BaseModel):
    """What all forms of claims have in common: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class PublishedRow(Form):
    """One published figure with its conditions `x`, its provenance, and whether it may decide a verdict (`gate`)."""

    id: str = Field(description="Its id, which the claim's entry repeats.")
    paper: str = Field(description="The paper's name.")
    statement: str = Field(description="What the paper states, in a sentence.")
    metric: str = Field(description="What was measured, in the paper's words.")
    unit: str = Field(description="Unit of the value.")
    direction: Direction | None = Field(description="Which direction is better; null for a value that has none.")
    x: dict[str, Any] = Field(description="Conditions under which it was measured.")
    value: Value = Field(description="The published value; null where it is not known.")
    baseline: str | None = Field(description="What the value is relative to.")
    where: str | None = Field(description="Figure, table or section of the paper.")
    source: str = Field(description="Where the value was read.")
    provenance: Provenance = Field(description="How the value was obtained.")
    gate: bool = Field(description="true: claims may be judged against this value.")

    @model_validator(mode="after")
    def _recalled_rows_decide_nothing(self) -> PublishedRow:
        if self.gate and (self.provenance.startswith("memory") or self.provenance == "not_recovered"):
            raise ValueError(f"{self.id}: a row of provenance {self.provenance} cannot have gate true")
        return self


class Rule(Form):
    """How a claim is judged; docs/verdicts.md shows what each rule accepts."""

    name: RuleName = Field(description="The rule.")
    tolerance: Annotated[float, Field(ge=0)] | Literal["floor"] | None = Field(
        None,
        description="`within`: a share of the published value, or `floor`: the machine's noise floor for these "
        "launches; `equal_to_tolerance`: distance from the value. Both need it.",
    )
    largest_floor: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="With `tolerance: floor`: the largest tolerance, a share. Where the floor is larger, it can refute "
        "the claim and not support it.",
    )
    relative: bool = Field(False, description="`tolerance` of `equal_to_tolerance` is a share of the value.")
    value: float | None = Field(
        None,
        description="`at_least`, `at_most`: the bound, which must be given. `within`, `equal_to_tolerance`: the "
        "target; null: the published value.",
    )
    low: float | None = Field(
        None, description="`ratio`: lower bound; needed, unless `one_sided` and `high` are given."
    )
    high: float | None = Field(
        None, description="`ratio`: upper bound; needed, unless `one_sided` and `low` are given."
    )
    one_sided: bool = Field(False, description="Any better value is accepted too.")
    neutral: float | None = Field(
        None,
        description="`within`: the value that means no effect, 1 for a speed-up. A miss on the published side of it is "
        "`direction only`.",
    )
    along: str | None = Field(None, description="`monotone`, which needs it: the field of the case that x is.")
    trend: Literal["rising", "falling"] | None = Field(
        None, description="`monotone`, which needs it: how the values go along it."
    )
    strict: bool = Field(True, description="false: `monotone` accepts steps without a difference.")
    effect: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="`ordering`, `monotone`: by which share each arm differs from the one before it, as the claim "
        "means it (0.1: by 10 %); `at_least`, `at_most`: by which share the value lies clear of the bound. It decides "
        "no verdict: `run --dry-run` says whether this machine can resolve it. null: it follows from the claim's "
        "numbers, or none is stated.",
    )

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Rule:
        missing = [name for name in _NEEDED.get(self.name, ()) if getattr(self, name) is None]
        if self.name == "ratio" and self.one_sided:
            if len(missing) != 1:
                raise ValueError("a one-sided rule 'ratio' takes 'low' or 'high', one of them")
        elif missing:
            raise ValueError(f"rule {self.name!r} needs {missing[0]!r}")
        if self.tolerance == "floor" and self.name != "within":
            raise ValueError(f"rule {self.name!r} takes a number as 'tolerance'; 'floor' is for rule 'within'")
        if self.largest_floor is not None and self.tolerance != "floor":
            raise ValueError("'largest_floor' belongs to 'tolerance: floor'")
        if self.effect is not None and self.name not in _ONE_SIDED:
            raise ValueError(
                f"'effect' belongs to the rules {', '.join(_ONE_SIDED)}; {self.name!r} has numbers of its own"
            )
        return self

    def tolerated(self, floor: float | None) -> float | None:
        """The tolerance with this noise floor (a share); None where it is the floor and no floor is known."""
        if self.tolerance != "floor":
            return self.tolerance
        return floor if floor is None or self.largest_floor is None else min(floor, self.largest_floor)

    def allows_for(self, floor: float | None) -> bool:
        """Whether the noise of the machine is in the tolerance already."""
        return self.tolerance == "floor" and self.tolerated(floor) == floor

    @property
    def sides(self) -> Literal["one-sided", "two-sided"]:
        """Whether values beyond the better end count against it."""
        return "one-sided" if self.one_sided or self.name in _ONE_SIDED else "two-sided"


class Deviation(Form):
    """How our experiment differs from the published one."""

    kind: DeviationKind = Field(description="What differs.")
    text: str = Field(description="How it differs, in a sentence.")


class Control(Form):
    """A run that must not show the effect: the claim's metric over other cases."""

    statement: str = Field(description="What must not be seen, in a sentence.")
    select: dict[str, Any] = Field(description="Fields of the cases in the control run.")
    against: dict[str, Any] | None = Field(None, description="Fields of the cases that a ratio is taken against.")
    over: tuple[str, ...] = Field(
        (), description="Fields of the case: no case with any combination of their values may show the effect."
    )


class Validates(Form):
    """What a claim of suite validation says about a level of evidence. It is about launches at that level whose case
    has the fields `where`, and not the fields `unless`. A miss lowers all of these launches; a claim that holds
    validates only launches like those that it was judged on."""

    what: str = Field(
        description="What is checked, in words; a launch is validated when each thing that is checked of its level is."
    )
    evidence: Literal["emulated", "simulated"] = Field(description="Level of evidence that it is about.")
    where: dict[str, Any] = Field({}, description="Fields of the cases that it is about.")
    unless: dict[str, Any] = Field({}, description="Fields of cases that it is not about.")
    alike: tuple[str, ...] = Field((), description="Fields in which a case must equal a case that was judged.")
    up_to: tuple[str, ...] = Field(
        (), description="Fields in which a case must not be larger than in any case that was judged."
    )
    down_to: tuple[str, ...] = Field(
        (), description="Fields in which a case must not be smaller than in any case that was judged."
    )
    binds: bool = Field(
        False,
        description="Only predictions of trainings that the same resource binds as those that were judged: one that is "
        "bound by latency says nothing about one that is bound by the links.",
    )
    total_rate: bool = Field(
        False,
        description="A miss is about launches whose nodes together may send at least at the rate of those that were "
        "judged, a claim that holds about those with at most that rate; links without a rate are left out. Such a "
        "claim alone validates no launch.",
    )


class ClaimForm(Form):
    """One entry of claims.yaml. A row of the paper has its statement, unit and direction from published.yaml; our own
    claims bring them."""

    id: str = Field(description="Id of a row of published.yaml, or one of our own.")
    kind: Kind = Field(
        "claim",
        description="claim: a result; check: an identity or a counter of our own code, counted apart; consistency: "
        "checked by arithmetic; context: shown, never judged.",
    )
    origin: Origin = Field("paper", description="paper: a row of published.yaml; own: a claim of our own.")
    experiment: str | None = Field(None, description="Experiment whose launches decide.")
    metric: str | None = Field(None, description="What is computed from them (docs/metrics).")
    select: dict[str, Any] = Field({}, description="Fields of the cases that decide; a list means any of its values.")
    against: dict[str, Any] | None = Field(None, description="Fields of the cases that a ratio is taken against.")
    base_evidence: Evidence | None = Field(
        None,
        description="Level of evidence of `against`, if it differs from that of `select`: how far two levels are "
        "apart.",
    )
    arms: tuple[dict[str, Any], ...] = Field(
        (),
        description="For `ordering` of more than two: fields over `select`, in the order claimed, the best first.",
    )
    over: tuple[str, ...] = Field(
        (),
        description="Fields of the case: the claim is about each combination of their values that the plan has, and "
        "judged at each. One that is refuted refutes the claim, unless `unknown` says otherwise.",
    )
    unknown: bool = Field(
        False,
        description="The fields of `over` are conditions of which the true value is not known: where the verdicts "
        "differ the claim stays open.",
    )
    nbytes: int | None = Field(None, description="Message size in bytes, for metrics per size.")
    x: dict[str, Any] = Field({}, description="Arguments of a metric that is arithmetic.")
    rule: Rule | None = Field(None, description="How the value is judged.")
    needs: str | None = Field(None, description="What a claim needs that cannot be run here.")
    deviations: tuple[Deviation, ...] = Field((), description="How our experiment differs from the published one.")
    cause: str | None = Field(
        None,
        description="What was found to cause it where the claim does not hold, in a sentence; shown with the verdict "
        "then.",
    )
    control: Control | None = Field(None, description="A run that must not show the effect.")
    statement: str | None = Field(
        None, description="A claim of our own in a sentence. Such claims need it, and unit, metric and rule."
    )
    unit: str | None = Field(None, description="Unit of our own claim's value.")
    direction: Direction | None = Field(None, description="Which direction is better, for a claim of our own.")
    validates: Validates | None = Field(
        None, description="Suite validation alone: which launches of all suites its verdict labels."
    )
    attempt: Attempt | None = Field(
        None,
        description="Only where it does not follow from `origin`: `reproduction` for a paper's claim that is run with "
        "the authors' code.",
    )

    @model_validator(mode="after")
    def _arms_fit(self) -> ClaimForm:
        ordered = self.rule is not None and self.rule.name == "ordering"
        if self.arms and (not ordered or self.against is not None or len(self.arms) < 2):
            raise ValueError(f"{self.id}: 'arms' are two or more, for rule 'ordering' without 'against'")
        if ordered and self.experiment is not None and not self.arms and self.against is None:
            raise ValueError(f"{self.id}: rule 'ordering' compares: give 'against' or 'arms'")
        over = self.over or (self.control is not None and self.control.over)
        if over and (self.arms or (self.rule is not None and self.rule.along is not None)):
            raise ValueError(f"{self.id}: 'over' judges a value or a ratio at each point; leave 'arms' and 'along' out")
        if self.unknown and not self.over:
            raise ValueError(f"{self.id}: 'unknown' is about the fields of 'over': give them")
        if self.rule is not None and self.rule.name == "monotone" and self.against is not None:
            raise ValueError(
                f"{self.id}: rule 'monotone' compares the selected cases with each other; leave 'against' out"
            )
        return self

    @model_validator(mode="after")
    def _can_validate(self) -> ClaimForm:
        unbounded = self.rule is None or self.rule.name in ORDERS or self.rule.tolerance == "floor"
        if self.validates and (unbounded or self.kind != "claim"):
            raise ValueError(
                f"{self.id}: what 'validates' is a claim whose rule has bounds of its own, so that a miss has a size"
            )
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
        if self.kind != "context" and self.metric is None and self.needs is None:
            raise ValueError(f"{self.id}: a claim without a metric says in 'needs' what is missing here")
        return self
