"""The outcome of a rule as facts: the test, the bound, the interval, the number of launches, and the reason.
`claims/sentences.py` makes the sentences; no code reads them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from scaleproof.claims.claim_form import Form
from scaleproof.stats.arm_difference import Difference, DifferenceTest, Finding
from scaleproof.stats.intervals import Interval
from scaleproof.stats.summary import Trend

Verdict = Literal[
    "reproduced",
    "direction only",
    "not reproduced",
    "inconclusive",
    "not runnable here",
    "not run at this size",
    "value not recovered",
    "unverified",
    "holds",
    "fails",
]
OF_CHECKS: dict[Verdict, Verdict] = {"reproduced": "holds", "direction only": "fails", "not reproduced": "fails"}
"""The words for entries of kind `check`: an identity or counter of our own code is not reproduced, it holds or
fails."""
WORST_FIRST: tuple[Verdict, ...] = ("not reproduced", "inconclusive", "direction only", "reproduced")
"""The verdicts of one case, in the order in which they decide a statement about every case."""
Position = Literal["inside", "outside", "straddles"]


class Reason(StrEnum):
    """The reason for a verdict."""

    INSIDE = "inside"  # all that was measured is accepted
    OUTSIDE = "outside"  # none of it is; of an identity: one launch or more is not
    STRADDLES = "straddles"  # part of the interval is accepted, part not
    SAME_DIRECTION = "same direction"  # not accepted, but on the published side of the neutral value
    NO_FLOOR = "no floor"  # a timing, and no noise floor of the machine fits its launches
    WITHIN_FLOOR = "within floor"  # the value is closer to the bound than the noise floor
    NOT_SIGNIFICANT = "not significant"  # the interval decides, the test does not
    TOO_FEW_LAUNCHES = "too few launches"
    NO_INTERVAL = "no interval"
    EVERY_STEP = "every step"
    STEP_AGAINST = "step against"
    STEPS_OPEN = "steps open"
    RANGE_AGREES = "range agrees"
    RANGE_DISAGREES = "range disagrees"
    RANGE_INCOMPLETE = "range incomplete"
    POINT_DECIDES = "point decides"  # of a statement about every case: the worst verdict of a case
    RECALLED = "recalled"
    NOT_RECOVERED = "not recovered"
    UNSERVED = "unserved"
    NOTHING_MEASURED = "nothing measured"


class Bound(StrEnum):
    """The shape of what a rule accepts."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BETWEEN = "between"
    BELOW_BASE = "below base"
    ABOVE_BASE = "above base"
    WITHIN = "within"
    WITHIN_OR_BETTER = "within or better"


class Region(Form):
    """The values that a rule accepts, bounds included."""

    bound: Bound
    low: float
    high: float
    times_base: bool = Field(default=False, description="the values are ratios to the base of the claim")
    target: float | None = Field(default=None, description="middle of a region `within`")
    reach: float | None = Field(default=None, description="how far such a region reaches from its target, in its unit")
    share: float | None = Field(default=None, description="the same as a share of the target, where the rule says so")

    def position(self, low: float, high: float) -> Position:
        """Where an interval lies: inside, outside, or on both sides of a bound."""
        if self.low <= low and high <= self.high:
            return "inside"
        return "outside" if high < self.low or low > self.high else "straddles"


class ArithmeticFacts(Form):
    """One number without launches, compared with what the rule accepts."""

    kind: Literal["arithmetic"] = "arithmetic"
    ours: float
    largest: float | None = Field(
        default=None, description="where conditions are known as a range, the largest value; `ours` is then the least"
    )
    region: Region


class IntervalFacts(Form):
    """An interval, compared with what the rule accepts."""

    kind: Literal["interval"] = "interval"
    ours: float
    region: Region
    interval: Interval | None = Field(description="None: too few launches for one")
    launches: int = Field(description="launches behind it, the smaller side of a ratio")
    sides: Literal["one-sided", "two-sided"]
    position: Position | None = None
    test: DifferenceTest | None = Field(default=None, description="the test behind a ratio")
    test_counts: tuple[int, int] | None = Field(default=None, description="launches of each side in that test")
    p_value: float | None = None
    finding: Finding | None = Field(default=None, description="what that test finds")
    floor: float | None = Field(default=None, description="noise floor of the machine, a share")
    floor_matters: bool = Field(default=False, description="a noise floor belongs to it: a ratio of measured times")
    neutral: float | None = Field(default=None, description="value without an effect, where the rule names one")
    published_above_neutral: bool | None = None


class LaunchesFacts(Form):
    """An identity that every launch must keep."""

    kind: Literal["launches"] = "launches"
    region: Region
    launches: int
    low: float = Field(description="smallest value of a launch")
    high: float = Field(description="largest value of a launch")
    outside: int = Field(description="launches that do not keep it")
    floor: float | None = Field(default=None, description="noise floor of the machine, a share, for a timing")


class StepFacts(Form):
    """One arm compared with the one before it; arms are named by the fields in which their cases differ."""

    before: dict[str, Any]
    after: dict[str, Any]
    difference: Difference


class StepsFacts(Form):
    """Several arms in the order claimed, or along x."""

    kind: Literal["steps"] = "steps"
    along: str | None = Field(description="field of the case that x is; None: arms in the order claimed")
    trend: Literal["rising", "falling"] | None
    strict: bool
    direction: Literal["higher", "lower"] | None = Field(description="which way is better, for an order of arms")
    wanted: Literal["higher", "lower"] = Field(description="how each arm must differ from the one before it")
    steps: tuple[StepFacts, ...]
    against: int | None = Field(default=None, description="the first step that refutes, as an index")
    open_steps: int = Field(description="steps that are not as wanted")
    launches: int | None = Field(description="launches of the smallest arm")
    correlation: Trend | None = Field(default=None, description="Kendall's tau over all launches")


class PointFacts(Form):
    """One case of a statement about every case, or one point of a range of conditions."""

    at: dict[str, Any]
    outcome: Outcome | None = Field(description="None: nothing was measured there")


class RangeFacts(Form):
    """The same rule in every case, or at every point of a range of conditions."""

    kind: Literal["range"] = "range"
    points: tuple[PointFacts, ...]
    unknown: bool = Field(
        default=True,
        description="the points are conditions of which the true one is not known: where they differ nothing is "
        "decided. false: a statement about each of them, so that one refutes it",
    )

    @property
    def decided(self) -> tuple[PointFacts, ...]:
        """Points that have an outcome."""
        return tuple(point for point in self.points if point.outcome is not None)

    @property
    def missing(self) -> tuple[PointFacts, ...]:
        """Points without a value."""
        return tuple(point for point in self.points if point.outcome is None)

    @property
    def worst(self) -> tuple[PointFacts, ...]:
        """The points with the worst verdict."""
        verdicts = [point.outcome.verdict for point in self.points if point.outcome is not None]
        worst = min(verdicts, key=WORST_FIRST.index, default=None)
        return tuple(point for point in self.decided if point.outcome is not None and point.outcome.verdict == worst)


Facts = Annotated[
    ArithmeticFacts | IntervalFacts | LaunchesFacts | StepsFacts | RangeFacts, Field(discriminator="kind")
]


ControlFinding = Literal["effect", "no effect", "no difference", "less effect", "undecided", "not measured"]


class ControlFacts(Form):
    """How the negative control changes a verdict."""

    outcome: Outcome | None = Field(description="its own outcome; None: nothing was measured")
    finding: ControlFinding | None = Field(
        default=None,
        description="what it shows; of an order also: no difference, or less than the claim by its whole interval. "
        "None in files of versions 1 and 2",
    )
    overrules: bool = Field(
        default=False, description="it takes a positive verdict away: it shows the effect too, or decides nothing"
    )

    @property
    def shows_effect(self) -> bool | None:
        """Whether the effect is there without its cause; None: not decided."""
        return None if self.finding in ("undecided", "not measured", None) else self.finding == "effect"


class Outcome(Form):
    """A verdict, why, and the facts behind it."""

    verdict: Verdict
    reason: Reason
    facts: Facts | None = Field(default=None, description="None where nothing is compared")
    control: ControlFacts | None = Field(default=None, description="None where the claim has no negative control")

    @property
    def holds(self) -> bool:
        """Whether the effect that the rule describes is there."""
        return self.verdict in ("reproduced", "holds")

    def of_check(self) -> Outcome:
        """The same outcome in the words for checks."""
        return self.model_copy(update={"verdict": OF_CHECKS.get(self.verdict, self.verdict)})


PointFacts.model_rebuild()
ControlFacts.model_rebuild()
Outcome.model_rebuild()
