"""The form of a comparison: what `scaleproof compare --json` prints, and what its table and its page are made from."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from scaleproof.stats.arm_difference import DifferenceReason, DifferenceTest, Finding

Change = Literal["worse", "better", "changed", "no difference", "inconclusive", "different machines"]
"""A finding interpreted by the metric's direction; `changed` where neither direction is better; `inconclusive` also
where no noise floor is known; `different machines` where a finding says more about the machines than about A and B."""


Outcome = Literal["regression", "no regression", "other machine", "undecided"]
"""The outcome for continuous integration."""


class OutcomeReason(StrEnum):
    """Why a comparison has its outcome, where the numbers do not show it."""

    NOTHING_COMPARED = "nothing compared"
    OTHER_MACHINES = "other machines"
    NO_NOISE_FLOOR = "no noise floor"


class NotPaired(StrEnum):
    """Why launches are not compared block by block."""

    NO_GOOD_LAUNCH = "no good launch"
    OTHER_MACHINE = "other machine"
    ONE_AFTER_THE_OTHER = "one after the other"
    OTHER_SEEDS = "other seeds"


class UnpairedReason(StrEnum):
    """Why a case is not compared."""

    TRACED = "traced"
    NO_SUCH_PROGRAM = "no such program"
    SEVERAL_FIT = "several fit"
    DIFFERS = "differs"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SideOut(_Part):
    """One side: its text, counts of its launches by how they ended, and where they ran."""

    given: str
    results: str = Field(description="the folder of records")
    ok: int
    failed: int
    not_runnable: int
    left_out: int = Field(
        description="good launches that are not compared: repeated later, of another version of the code or machine "
        "than the case's last one, or traced"
    )
    cases: int
    machines: tuple[str, ...]
    codes: tuple[str, ...] = Field(
        description="version and commit; a digest where the commit does not say which code ran"
    )
    first: str | None
    last: str | None


class Differing(_Part):
    """A field of the case that is not equal."""

    name: str
    a: str
    b: str


class Row(_Part):
    """One metric of a pair of cases: medians over launches, B relative to A."""

    metric: str
    nbytes: int | None
    unit: str
    direction: Literal["higher", "lower"] | None
    a: float | None
    b: float | None
    shares: tuple[float | None, float | None] = Field(
        description="a and b as a share of what their machines can do; null: no rate, or no bound"
    )
    no_bound: str = Field(description="why a rate has no bound; empty: it has one, or is no rate")
    n: tuple[int, int]
    ratio: float | None = Field(description="median of B over median of A")
    shift: float | None = Field(
        description="the factor from A to B that the test is about (Hodges-Lehmann); "
        "free of what the two launches of a block share"
    )
    low: float | None
    high: float | None
    coverage: float | None
    test: str = Field(description="the test in words")
    tested_by: DifferenceTest
    p_value: float | None
    p_adjusted: float | None = Field(description="after Benjamini and Hochberg, over all rows of this comparison")
    floor: float | None = Field(description="the machine's noise floor, as a share")
    finding: Finding
    change: Change
    regression: bool
    reason: DifferenceReason = Field(description="why the two sides have this finding")
    adjusted_away: bool = Field(description="significant alone, but not once all comparisons are counted")
    detectable: float | None = Field(description="the smallest difference, a share, that so many launches find")
    why: str = Field(description="the reason in words")

    @property
    def without_floor(self) -> bool:
        """Significant, but no noise floor is known that says whether it is more than noise."""
        return self.change == "inconclusive" and self.finding in ("higher", "lower")

    @property
    def factor(self) -> float | None:
        """The change as it is shown: what was tested, else the ratio of medians."""
        return self.ratio if self.shift is None else self.shift

    @property
    def scale(self) -> tuple[float, str]:
        """What to multiply its values by to read them, and their unit then: short times in ms or µs."""
        if self.unit != "s" or not self.a or abs(self.a) >= 1:
            return 1.0, self.unit
        return (1e3, "ms") if abs(self.a) >= 1e-3 else (1e6, "µs")


class PairOut(_Part):
    """Two cases that may be compared, the fields in which they differ, and every metric that their launches give."""

    title: str
    program: str
    case_a: str
    case_b: str
    differs: tuple[Differing, ...]
    paired: bool = Field(description="launches are compared block by block: they come from one interleaved run")
    not_paired: NotPaired | None = Field(description="why they are not; None where they are")
    why_unpaired: str = Field(description="the same in words")
    same_machine: bool
    failed: tuple[int, int] = Field(description="launches of each side that failed or could not run")
    all_failed: bool = Field(description="A has good launches and B has none: a regression")
    runs_a: tuple[str, ...]
    runs_b: tuple[str, ...]
    rows: tuple[Row, ...]


class UnpairedOut(_Part):
    """A case that is not compared, and why."""

    side: Literal["A", "B"]
    case: str
    title: str
    why: UnpairedReason
    nearest: str | None = Field(description="the nearest case of the other side")
    unequal: tuple[Differing, ...] = Field(description="fields that keep the two apart: `a` here, `b` there")
    reason: str = Field(description="why, in words")


class EnvironmentOut(_Part):
    """A fact of the environment that differs between the sides; several values: it also differed between launches of
    one side."""

    part: str
    name: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    matters: bool
    asked: bool = Field(description="it is what the two sides are defined by")


class WarningOut(_Part):
    """A warning about what limits the conclusions."""

    code: str
    message: str


class Comparison(_Part):
    """A whole comparison. Equal records give equal bytes: there is no date and no random number in it."""

    schema_version: Literal[3] = 3
    outcome: Outcome
    outcome_reason: OutcomeReason | None = Field(description="None where the numbers say it")
    outcome_metrics: tuple[str, ...] = Field(description="metrics that the reason is about")
    outcome_why: str = Field(description="the reason in words")
    a: SideOut
    b: SideOut
    confidence: float
    across_machines: bool
    tests: int = Field(description="how many p-values were adjusted together")
    counts: dict[Change, int]
    regressions: int
    pairs: tuple[PairOut, ...]
    unpaired: tuple[UnpairedOut, ...]
    environment: tuple[EnvironmentOut, ...]
    warnings: tuple[WarningOut, ...]

    @property
    def rows(self) -> list[Row]:
        """The rows of all pairs."""
        return [row for pair in self.pairs for row in pair.rows]
