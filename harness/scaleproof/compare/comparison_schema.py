"""The form of a comparison: what `scaleproof compare --json` prints, and what its table and its page are made from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Finding = Literal["higher", "lower", "no difference", "inconclusive"]
Change = Literal["worse", "better", "changed", "no difference", "inconclusive", "different machines"]
"""A finding read by the metric's direction; `changed` where none is better; `different machines` where a finding says
more about these than about A and B."""


Outcome = Literal["regression", "no regression", "other machine", "undecided"]
"""What it means for continuous integration."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SideOut(_Part):
    """One side: what was written, how many of its launches ended how, and where they ran."""

    given: str
    results: str
    """The folder of records."""
    ok: int
    failed: int
    not_runnable: int
    left_out: int
    """Good launches that are not compared: repeated later, of another version of the code or machine than the case's
    last one, or traced."""
    cases: int
    machines: tuple[str, ...]
    codes: tuple[str, ...]
    """Version and commit; a digest where the commit does not say which code ran."""
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
    n: tuple[int, int]
    ratio: float | None
    """Median of B over median of A."""
    shift: float | None
    """The factor from A to B that the test is about (Hodges-Lehmann); free of what the two launches of a block share.
    """
    low: float | None
    high: float | None
    coverage: float | None
    test: str
    p_value: float | None
    p_adjusted: float | None
    """After Benjamini and Hochberg, over all rows of this comparison."""
    floor: float | None
    """The machine's noise floor, as a share."""
    finding: Finding
    change: Change
    regression: bool
    why: str

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
    paired: bool
    """Launches are compared block by block: they come from one interleaved run."""
    why_unpaired: str
    same_machine: bool
    failed: tuple[int, int]
    """Launches of each side that failed or could not run."""
    all_failed: bool
    """A has good launches and B has none: a regression."""
    runs_a: tuple[str, ...]
    runs_b: tuple[str, ...]
    rows: tuple[Row, ...]


class UnpairedOut(_Part):
    """A case that is compared with nothing, and why."""

    side: Literal["A", "B"]
    case: str
    title: str
    reason: str


class EnvironmentOut(_Part):
    """A fact of the environment that is not equal; several values: it was not the same in all launches of that side."""

    part: str
    name: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    matters: bool
    asked: bool
    """It is what the two sides are defined by."""


class WarningOut(_Part):
    """What a reader must know before believing a row."""

    code: str
    message: str


class Comparison(_Part):
    """All of it. Equal records give equal bytes: there is no date and no random number in it."""

    schema_version: Literal[2] = 2
    outcome: Outcome
    outcome_why: str
    """Empty where the numbers say it."""
    a: SideOut
    b: SideOut
    confidence: float
    across_machines: bool
    tests: int
    """How many p-values were adjusted together."""
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
