"""Whether a claim can fall both ways with the launches that a size plans: made-up launches that clearly hold it, and
such that clearly fail it, are judged as launches that ran."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleproof.claims.claims_yaml import Claim
from scaleproof.claims.judge import judge_claims
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.made_up import ImpossibleValue, MadeUp, Wanted
from scaleproof.claims.made_up_store import MadeUpStore
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import KnownFloor, base_metric
from scaleproof.claims.outcome import Verdict
from scaleproof.claims.wanted_values import Side, aim, clear_factor, ordered_sides, sides, sides_of_case
from scaleproof.core.record_schema import Evidence
from scaleproof.record.machine import floor_of_launches, floor_of_one_launch
from scaleproof.spec.case import AnyCase
from scaleproof.spec.evidence import planned_evidence
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite
from scaleproof.spec.suite_form import NO_VERDICTS
from scaleproof.stats.intervals import median, smallest_count
from scaleproof.stats.many_tests import blocks_needed

HALVINGS = 4
"""How often noise that moves a launch to a value that it cannot have is halved, on the scale of logarithms."""
Fall = tuple[Verdict | None, str]
"""A verdict, and the sentence behind it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What a machine adds to the values: `spread` is the standard deviation of the logarithm of one launch, `floor` a
    share, of comparisons of the fewest launches that give a verdict; None: not known."""

    spread: float = 0.0002
    floor: float | None = 0.001

    def known(self, launches: int) -> KnownFloor:
        """Its floors, of arms of so many launches and of single launches."""
        if self.floor is None:
            return KnownFloor()
        of_arms = floor_of_launches(self.floor, smallest_count(), launches)
        return KnownFloor(of_arms, floor_of_one_launch(self.floor, self.spread))

    @property
    def clear(self) -> float:
        """A factor that cannot be missed."""
        return 1.25 * (1 + (self.floor or 0.0)) * math.exp(6 * self.spread)


@dataclass(frozen=True, slots=True)
class Power:
    """How a claim falls at one level of evidence, from launches that hold it and from launches that fail it."""

    evidence: Evidence
    launches: int
    holds: Fall
    fails: Fall

    @property
    def both_ways(self) -> bool:
        """Whether the claim is confirmed by the ones and refuted by the others."""
        return self.holds[0] in ("reproduced", "holds") and self.fails[0] in ("not reproduced", "fails")


def unjudged(claim: Claim, size: str) -> str | None:
    """Why no launches decide the claim at any number; None where they do."""
    if size in NO_VERDICTS:
        return "this size judges nothing"
    if claim.form.kind == "context":
        return "context: shown, never judged"
    if claim.recalled:
        return "recalled: the published value is known from memory only"
    if claim.not_recovered:
        return "the published value was not recovered"
    if claim.metric is not None and claim.metric.model is not None:
        return "arithmetic: no launches"
    if claim.metric is None or claim.form.experiment is None:
        return f"unserved: needs {claim.form.needs}"
    return None


def compared_launches(metric: Metric, count: int) -> int:
    """Launches of an arm behind a claim whose number comes from `count` values; of differences between levels of
    evidence these are cases, each of as many launches as a verdict needs."""
    return count if metric.apart is None else smallest_count()


def against_prediction(claim: Claim, evidence: Evidence) -> bool:
    """Whether one side of the claim is predicted and the other is not: the interval of their ratio is not of pairs, and
    noise moves one side alone."""
    base = claim.form.base_evidence
    return base is not None and evidence != base and "simulated" in (evidence, base)


class Launches:
    """The planned launches of the claims of one suite at one size."""

    def __init__(self, suite: Suite, size: str) -> None:
        self.suite, self.size = suite, size
        self._plans: dict[str, list[PlannedLaunch]] = {}
        self._selected: dict[tuple[str, str], list[PlannedLaunch]] = {}

    def selected(self, claim: Claim, select: Mapping[str, Any]) -> list[PlannedLaunch]:
        """Planned launches of the selected cases."""
        name = str(claim.form.experiment)
        if name not in self._plans:
            here = self.size in self.suite.experiment(name).sizes
            self._plans[name] = plan(self.suite, name, self.size) if here else []
        key = name, repr(select)
        if key not in self._selected:
            self._selected[key] = [launch for launch in self._plans[name] if chosen(launch.case, select)]
        return self._selected[key]

    def evidences(self, claim: Claim) -> list[Evidence]:
        """The levels of evidence that the claim will have."""
        found = {planned_evidence(launch.case) for launch in self.selected(claim, claim.form.select)}
        return sorted(found - {claim.form.base_evidence})

    def for_a_verdict(self, claim: Claim, evidence: Evidence) -> int:
        """Fewest launches of each side with which a verdict can fall both ways: of several arms one step that is the
        other way round must be significant after the correction over all steps."""
        return max(smallest_count(), blocks_needed(len(self._arms(claim, evidence)) - 1))

    def count(self, claim: Claim, evidence: Evidence) -> int:
        """Values behind the claim's number, of the side that has fewest: launches, blocks of several arms, or cases
        that two levels of evidence share."""
        form, metric = claim.form, claim.metric
        against = [form.against] if form.against is not None and metric is not None and metric.pair is None else []
        selects = [*self._arms(claim, evidence), *against]
        levels = [evidence, *[form.base_evidence or evidence for _ in selects[1:]]]
        if metric is not None and metric.apart is not None:
            return len({launch.case.case_id for launch in self._at(claim, form.select, evidence)})
        made = [self._at(claim, *side) for side in zip(selects, levels, strict=True)]
        if metric is not None and metric.block is not None or form.over:
            return min(len({launch.plan_index for launch in side}) for side in made)
        return min(map(len, made))

    def cases(self, claim: Claim, evidence: Evidence) -> list[AnyCase]:
        """The claim's cases, of all sides."""
        form, metric = claim.form, claim.metric
        made = [launch for select in self._arms(claim, evidence) for launch in self._at(claim, select, evidence)]
        if form.against is not None and metric is not None:
            made += self._at(claim, form.against, form.base_evidence or evidence)
        return list({launch.case.case_id: launch.case for launch in made}.values())

    def _at(self, claim: Claim, select: Mapping[str, Any], evidence: Evidence) -> list[PlannedLaunch]:
        return [launch for launch in self.selected(claim, select) if planned_evidence(launch.case) == evidence]

    def power(self, claim: Claim, evidence: Evidence, noise: Noise) -> Power:
        """How made-up launches fall that hold the claim, and such that fail it: of a claim about every case, launches
        that fail it in one case."""
        metric = claim.metric
        assert metric is not None
        holding, failing = self._scenarios(claim, metric, evidence, noise)
        judged = [self._judged(claim, metric, evidence, scenario, noise) for scenario in (holding, failing)]
        return Power(evidence, self.count(claim, evidence), *judged)

    def _scenarios(
        self, claim: Claim, metric: Metric, evidence: Evidence, noise: Noise
    ) -> tuple[list[Side], list[Side]]:
        rule, form, clear = claim.form.rule, claim.form, clear_factor(claim, noise.clear)
        assert rule is not None
        if form.arms or rule.along is not None:
            return self._orders(claim, metric, self._arms(claim, evidence), clear)
        floor = noise.known(compared_launches(metric, self.count(claim, evidence))).used_for(metric, rule).share
        aimed, case = aim(claim, metric, clear, floor), self._one_case(claim, evidence)
        for fails in aimed.fails:
            holding = sides(claim, metric, aimed.holds, fails)
            failing = sides(claim, metric, fails, aimed.holds)
            if case is not None:
                failing = [*sides_of_case(claim, metric, fails, case), *holding]
            if self._can_be_made(claim, metric, failing):
                return holding, failing
        raise ImpossibleValue(f"no launch fails it, with any of {aimed.fails}")

    def _one_case(self, claim: Claim, evidence: Evidence) -> dict[str, Any] | None:
        """The fields of one case of a claim about every case; None for other claims."""
        form = claim.form
        if not form.over or form.unknown:
            return None
        case = self._at(claim, form.select, evidence)[-1].case
        return {field: case.value(field) for field in form.over}

    def _arms(self, claim: Claim, evidence: Evidence) -> list[dict[str, Any]]:
        """What selects each arm: those that the claim names, or one for each planned value of the field of a trend;
        else all cases of the claim."""
        form, along = claim.form, claim.form.rule.along if claim.form.rule else None
        if along is None:
            return [{**form.select, **arm} for arm in form.arms or ({},)]
        found = {launch.case.value(along) for launch in self._at(claim, form.select, evidence)}
        return [{**form.select, along: x} for x in sorted(found)] or [form.select]

    def _orders(
        self, claim: Claim, metric: Metric, selects: Sequence[Mapping[str, Any]], clear: float
    ) -> tuple[list[Side], list[Side]]:
        """As claimed, and with the last two arms the other way round."""
        rule = claim.form.rule
        assert rule is not None
        if len(selects) < 2:
            raise ImpossibleValue(f"one value of {rule.along!r} is planned, along which nothing rises or falls")
        rising = rule.trend == "rising" if rule.along is not None else claim.direction == "lower"
        values = [clear**place for place in range(len(selects))]
        claimed = values if rising else values[::-1]
        turned = [*claimed[:-2], claimed[-1], claimed[-2]]
        return ordered_sides(metric, selects, claimed), ordered_sides(metric, selects, turned)

    def _can_be_made(self, claim: Claim, metric: Metric, scenario: Sequence[Side]) -> bool:
        try:
            for side in scenario:
                for launch in {each.case.case_id: each for each in self.selected(claim, side.select)}.values():
                    self._make(metric, claim, side, launch, side.value_of(launch.case))
        except ImpossibleValue:
            return False
        return True

    def _judged(self, claim: Claim, metric: Metric, evidence: Evidence, scenario: Sequence[Side], noise: Noise) -> Fall:
        identity = claim.form.rule is not None and claim.form.rule.name == "equal_to_tolerance"
        spread = 0.0 if identity and not metric.timing else noise.spread  # an identity is exact, or it is none
        store, done = MadeUpStore(), set[tuple[str, int]]()
        levels = {evidence, claim.form.base_evidence} - {None}
        one_predicted = against_prediction(claim, evidence)
        for side in scenario:
            of_side = self.selected(claim, side.select)
            blocks = {launch.plan_index: 0 for launch in of_side}
            scatter = _scatter(len(blocks if metric.block else of_side), spread, repr(side.select))
            if metric.block is not None:  # the launches of a block share its noise
                blocks = dict(zip(blocks, range(len(blocks)), strict=True))
                scatter = scatter[[blocks[launch.plan_index] for launch in of_side]]
            for launch, factor in zip(of_side, scatter, strict=True):
                level, key = planned_evidence(launch.case), (launch.case.case_id, launch.plan_index)
                if key in done or level not in levels or side.evidence not in (None, level):
                    continue
                done.add(key)
                exact = one_predicted and level == "simulated"
                store.add(launch, self._noisy(metric, claim, side, launch, 1.0 if exact else factor))
        noisy = metric.timing and levels != {"simulated"}
        known = noise.known(compared_launches(metric, self.count(claim, evidence))) if noisy else KnownFloor()
        (results,) = judge_claims(self.suite, self.size, store, [claim], lambda *_, **__: known)
        result = next((result for result in results if result.evidence == evidence), results[0])
        return result.verdict, "; ".join(filter(None, [result.rule, result.reason]))

    def _noisy(self, metric: Metric, claim: Claim, side: Side, launch: PlannedLaunch, factor: float) -> MadeUp:
        """A launch with its noise; with the square root of the factor, and so on, where its case cannot have the value:
        a share of its steps, say, is at most all of them."""
        value = side.value_of(launch.case)
        if value is not None:
            for _ in range(HALVINGS):
                try:
                    return self._make(metric, claim, side, launch, _within(metric, value, factor))
                except ImpossibleValue:
                    factor = math.sqrt(factor)
        return self._make(metric, claim, side, launch, value)

    def _make(self, metric: Metric, claim: Claim, side: Side, launch: PlannedLaunch, value: float | None) -> MadeUp:
        made_up = base_metric(metric).made_up
        if made_up is None:
            raise ImpossibleValue(f"metric {metric.name!r} cannot make up a launch: give it `made_up`")
        block: tuple[AnyCase, ...] = ()
        if metric.block is not None:
            block = tuple(other.case for other in self.selected(claim, side.select) if other.plan_index == 0)
        return made_up(Wanted(launch.case, value, claim.form.nbytes, block))


def _within(metric: Metric, value: float, factor: float) -> float:
    """A value with its noise, of those that a launch can have: what is bounded above scatters in its distance to the
    bound."""
    least, most = base_metric(metric).possible
    scattered = value * factor if math.isinf(most) else most - (most - value) * factor
    return min(max(scattered, least), most)


def _scatter(count: int, spread: float, arm: str) -> np.ndarray:
    """Factors with a median of 1, normal quantiles in another order for each arm."""
    from scipy.stats import norm

    generator = np.random.default_rng(zlib.crc32(arm.encode()))
    quantiles = norm.ppf((np.arange(count) + 0.5) / count) if count else np.empty(0)
    factors: np.ndarray = np.exp(spread * generator.permutation(quantiles))
    return factors / median(factors) if count else factors
