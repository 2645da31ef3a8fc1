"""How many launches each case of an experiment got, and what decided it:
results/stops/<suite>.<experiment>.<size>.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch, campaign_plan, plan
from scaleproof.spec.suite import Suite

Decided = Literal["reached", "budget spent", "time spent", "fixed number", "no result", "unfinished"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseStop(_Part):
    """How many launches one case got, and why no more."""

    case_id: str = Field(description="Id of the case.")
    arm: str = Field(description="Its arm.")
    campaign: int = Field(0, description="The campaign of these launches, from 0.")
    repetitions: int = Field(description="Repetitions of the campaign that were planned when its run ended.")
    launches: int = Field(description="Of these, launches that gave a value.")
    decided: Decided = Field(
        description="What ended the launches. `no result`: no launch of the minimum gave a value; `unfinished`: the "
        "run ended before anything was decided."
    )
    half_width_share: float | None = Field(
        description="Distance from the median to the farther end of its interval, as a share of the median; None "
        "without an interval or a metric."
    )


class ClaimStop(_Part):
    """How exactly the number of one claim is known, and why its launches ended."""

    claim: str = Field(description="Id of the claim.")
    campaign: int = Field(0, description="The campaign of these launches, from 0.")
    launches: int = Field(description="Blocks in which every side of the claim has a value.")
    minutes: float = Field(description="Wall time of the launches of its cases.")
    decided: Decided = Field(description="What ended its launches.")
    half_width_share: float | None = Field(
        description="Distance from the number to the farther end of its interval, as a share of the number; None "
        "without an interval."
    )

    @property
    def reached(self) -> str:
        """The interval reached and what it took, in words."""
        share = self.half_width_share
        interval = "no interval" if share is None else f"an interval that reaches {100 * share:.2g} % from the number"
        return f"{interval} after {self.launches} blocks in {self.minutes:.1f} minutes"


class Stops(_Part):
    """One experiment at one size with all its campaigns, written after every block. Without a target the number of
    launches was fixed."""

    schema_version: Literal[1] = 1
    suite: str
    experiment: str
    size: str
    machine: str = Field(description="Id of the machine on which the experiment ran.")
    code: str = Field(description="Digest of the code that ran.")
    metric: str | None = Field(None, description="Metric whose interval decides; None: the claims' numbers, or none.")
    nbytes: int | None = Field(None, description="Message size in bytes, for a metric per message size.")
    target: float | None = Field(
        None, description="Largest half width of the interval, as a share of the median; None: the number was fixed."
    )
    minutes: float | None = Field(None, description="Most minutes of the launches of one claim in a campaign.")
    minimum: int = Field(description="Launches of each case in a campaign before anything is decided.")
    budget: int = Field(description="Most launches of a case in a campaign.")
    cases: tuple[CaseStop, ...] = Field(description="An entry per campaign and case.")
    claims: tuple[ClaimStop, ...] = Field(
        (), description="An entry per campaign and claim, where the claims' numbers decide."
    )

    def case(self, case_id: str, campaign: int = 0) -> CaseStop | None:
        """The entry of a case in a campaign."""
        return next((case for case in self.cases if (case.case_id, case.campaign) == (case_id, campaign)), None)

    def repetitions(self, campaign: int) -> dict[str, int]:
        """Planned repetitions in a campaign, by case id."""
        return {case.case_id: case.repetitions for case in self.cases if case.campaign == campaign}

    def claim_sentence(self, claim: str) -> str:
        """A sentence on what ended the launches of a claim and the interval reached; empty if its number did not
        decide."""
        stops = [each for each in self.claims if each.claim == claim]
        if not stops or self.target is None:
            return ""
        limits = f"{self.budget} launches" + ("" if self.minutes is None else f" or {self.minutes:g} minutes")
        found = "; ".join(f"{stop.decided}, with {stop.reached}" for stop in stops)
        return f"launches went on until {100 * self.target:g} % was reached or {limits} were spent: {found}"

    def sentence(self, case_ids: Collection[str]) -> str:
        """A sentence on what ended the launches of these cases; empty if their number was fixed."""
        decided = Counter(case.decided for case in self.cases if case.case_id in case_ids)
        if self.metric is None or self.target is None or not decided:
            return ""
        counts = ", ".join(f"{reason} in {count}" for reason, count in sorted(decided.items()))
        return (
            f"launches went on until {self.metric} was known within {100 * self.target:g} % "
            f"or {self.budget} were made; cases: {counts}"
        )


def stops_path(results: Path, suite: str, experiment: str, size: str) -> Path:
    """The file of an experiment at a size."""
    return results / "stops" / f"{suite}.{experiment}.{size}.json"


def read_stops(results: Path, suite: str, experiment: str, size: str) -> Stops | None:
    """The file's content; None if the experiment never ran, SpecError for a file of another form."""
    command = f"scaleproof run {suite} {experiment} --size {size}"
    remedy = f"not of this version; remove it and start `{command}`, which repeats no launch"
    return read_form(stops_path(results, suite, experiment, size), Stops, remedy)


def write_stops(results: Path, stops: Stops) -> Path:
    """Write the file by one rename. Entries of campaigns that `stops` does not have are kept."""
    names = stops.suite, stops.experiment, stops.size
    try:
        earlier = read_stops(results, *names)
    except SpecError:  # of another version: replaced as a whole
        earlier = None
    written = {case.campaign for case in stops.cases}
    kept = [case for case in (earlier.cases if earlier else ()) if case.campaign not in written]
    kept_claims = [claim for claim in (earlier.claims if earlier else ()) if claim.campaign not in written]
    cases = sorted([*kept, *stops.cases], key=lambda case: case.campaign)
    claims = sorted([*kept_claims, *stops.claims], key=lambda claim: claim.campaign)
    merged = stops.model_copy(update={"cases": tuple(cases), "claims": tuple(claims)})
    return write_form(stops_path(results, *names), merged)


def decided_plan(results: Path, suite: Suite, experiment: str, size: str) -> list[PlannedLaunch]:
    """The plan of an experiment. If the size has `stop`, each case has in each campaign the number of repetitions that
    was decided while the experiment ran."""
    chosen = suite.experiment(experiment).size(size)
    stops = read_stops(results, suite.name, experiment, size) if chosen.stop else None
    if stops is None:
        return plan(suite, experiment, size)
    launches: list[PlannedLaunch] = []
    for campaign in range(chosen.campaigns):
        repetitions = {
            case_id: min(max(count, chosen.launches), chosen.most_launches)
            for case_id, count in stops.repetitions(campaign).items()
        }
        launches += campaign_plan(suite, experiment, size, campaign, repetitions)
    return launches
