"""How many launches each case of an experiment got, and what decided it:
results/stops/<suite>.<experiment>.<size>.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from scaleproof.core.atomic_write import write_form
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite

Decided = Literal["reached", "budget spent", "fixed number", "no result", "unfinished"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseStop(_Part):
    """One case: repetitions planned in the end, those that gave a value, and what decided. `half_width_share`: how far
    the interval's farther end is from the median, as a share of it, over all of them; None where there is no interval
    or no metric was named. `no result`: no launch of the minimum gave a value; `unfinished`: the run ended before
    anything was decided."""

    case_id: str
    arm: str
    repetitions: int
    launches: int
    decided: Decided
    half_width_share: float | None


class Stops(_Part):
    """One experiment at one size; written again after every block. Without a metric the number was fixed."""

    schema_version: Literal[1] = 1
    suite: str
    experiment: str
    size: str
    machine: str
    code: str
    metric: str | None = None
    nbytes: int | None = None
    target: float | None = None
    minimum: int
    budget: int
    cases: tuple[CaseStop, ...]

    def case(self, case_id: str) -> CaseStop | None:
        """By id."""
        return next((found for found in self.cases if found.case_id == case_id), None)

    def words(self, case_ids: Collection[str]) -> str:
        """What ended the launches of these cases, for a reader; empty where their number was fixed."""
        decided = Counter(case.decided for case in self.cases if case.case_id in case_ids)
        if self.metric is None or self.target is None or not decided:
            return ""
        found = ", ".join(f"{word} in {count}" for word, count in sorted(decided.items()))
        return f"launches went on until {self.metric} was known within {100 * self.target:g} % or {self.budget} were made; cases: {found}"


def stops_path(results: Path, suite: str, experiment: str, size: str) -> Path:
    """Where they lie."""
    return results / "stops" / f"{suite}.{experiment}.{size}.json"


def read_stops(results: Path, suite: str, experiment: str, size: str) -> Stops | None:
    """None when the experiment never ran; SpecError for a file of another form."""
    path = stops_path(results, suite, experiment, size)
    try:
        return Stops.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError:
        raise SpecError(
            f"{path}: not of this version; remove it and start `scaleproof run {suite} {experiment} --size {size}`, which repeats no launch"
        ) from None


def write_stops(results: Path, stops: Stops) -> Path:
    """Put it in place by one rename."""
    return write_form(stops_path(results, stops.suite, stops.experiment, stops.size), stops)


def decided_plan(results: Path, suite: Suite, experiment: str, size: str) -> list[PlannedLaunch]:
    """The plan with as many repetitions of each case as were decided while it ran, where the size has `stop`; else the
    plan itself."""
    chosen = suite.experiment(experiment).size(size)
    stops = read_stops(results, suite.name, experiment, size) if chosen.stop else None
    if stops is None or chosen.stop is None:
        return plan(suite, experiment, size)
    repetitions = {
        case.case_id: min(max(case.repetitions, chosen.launches), chosen.stop.budget) for case in stops.cases
    }
    return plan(suite, experiment, size, repetitions)
