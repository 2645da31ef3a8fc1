"""Rules that turn an estimate into a verdict, as pure functions. An interval decides, and one that straddles a bound is
inconclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scaleproof.claims.arithmetic import Ends
from scaleproof.claims.beyond_floor import HowNoiseEnters, could_be
from scaleproof.claims.claim_form import Direction, Rule
from scaleproof.claims.outcome import (
    ArithmeticFacts,
    Bound,
    IntervalFacts,
    LaunchesFacts,
    Outcome,
    Position,
    Reason,
    Region,
    StepFacts,
    StepsFacts,
    Verdict,
)
from scaleproof.spec.errors import SpecError
from scaleproof.stats.arm_difference import Difference, Finding
from scaleproof.stats.intervals import CONFIDENCE, Interval, smallest_count
from scaleproof.stats.many_tests import holm
from scaleproof.stats.summary import Trend

BY_POSITION: dict[Position, tuple[Verdict, Reason]] = {
    "inside": ("reproduced", Reason.INSIDE),
    "outside": ("not reproduced", Reason.OUTSIDE),
    "straddles": ("inconclusive", Reason.STRADDLES),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number from launches. `values`: one per launch where the metric is per launch; n is None for arithmetic, which
    needs no interval.

    `floor`: the machine's noise floor (None: it does not matter, or is not known, which `floor_unknown` says); `noise`:
    how it enters the value (claims/beyond_floor.py); `undecided`, `undecided_below`: by how much a value of several
    launches together may be larger, and smaller, through what lies within the floor; of arithmetic, by how much it may
    be larger through conditions that are known as a range. Of a ratio:
    `difference` is the test behind it. Of several arms: `steps`, each arm against the one before, and `trend` over all
    of them; `ours` is then the last arm over the first.
    """

    ours: float
    interval: Interval | None
    n: int | None
    values: tuple[float, ...] = ()
    difference: Difference | None = None
    floor: float | None = None
    floor_unknown: bool = False
    undecided: float = 0.0
    undecided_below: float = 0.0
    noise: HowNoiseEnters = "factor"
    steps: tuple[StepFacts, ...] = ()
    trend: Trend | None = None

    @classmethod
    def of_ends(cls, ends: Ends) -> Estimate:
        """Of arithmetic."""
        return cls(ends.low, None, None, undecided=ends.apart, noise="inside")

    @property
    def within_noise(self) -> tuple[float, float]:
        """What the value could be on this machine if noise alone had moved it by as much as the floor."""
        return self.moved_by_noise(self.ours)

    def moved_by_noise(self, value: float) -> tuple[float, float]:
        """The same of one of `values`."""
        if self.noise == "inside":
            return value - self.undecided_below, value + self.undecided
        return could_be(value, self.floor or 0.0, self.noise)


def apply_rule(rule: Rule, estimate: Estimate, published: float | None, direction: Direction | None) -> Outcome:
    """The outcome of a rule for an estimate. Raises SpecError when the rule needs a published value or a direction that
    is not there."""
    outcome = _outcome(rule, estimate, published, direction)
    return without_floor(outcome) if estimate.floor_unknown else outcome


def without_floor(outcome: Outcome) -> Outcome:
    """The outcome of a timing where no noise floor of the machine fits its launches: noise may be the whole effect, or
    hide it, so nothing is decided either way."""
    if outcome.verdict == "inconclusive":
        return outcome
    return outcome.model_copy(update={"verdict": "inconclusive", "reason": Reason.NO_FLOOR})


def _outcome(rule: Rule, estimate: Estimate, published: float | None, direction: Direction | None) -> Outcome:
    if estimate.steps:
        return outcome_of_steps(rule, estimate, direction)
    if rule.tolerated(estimate.floor) is None and rule.tolerance is not None:
        return Outcome(verdict="inconclusive", reason=Reason.NO_FLOOR)
    region = accepted_region(rule, published, direction, estimate.floor)
    if estimate.n is None:
        region = region.model_copy(update={"times_base": False})  # arithmetic has no base
        low, high = estimate.within_noise
        verdict, reason = BY_POSITION[region.position(low, high)]
        facts = ArithmeticFacts(ours=estimate.ours, region=region, largest=None if high == low else high)
        return Outcome(verdict=verdict, reason=reason, facts=facts)
    if rule.name == "equal_to_tolerance":
        return _outcome_of_every_launch(region, estimate)
    return _outcome_of_interval(rule, region, estimate, published)


def accepted_region(
    rule: Rule, published: float | None, direction: Direction | None, floor: float | None = None
) -> Region:
    """The values that a rule accepts; `floor`: the machine's noise floor, which may be the tolerance."""
    if rule.name == "at_least":
        return Region(bound=Bound.AT_LEAST, low=_needed(rule.value, rule), high=math.inf)
    if rule.name == "at_most":
        return Region(bound=Bound.AT_MOST, low=-math.inf, high=_needed(rule.value, rule))
    if rule.name == "ratio":
        return _between(rule)
    if rule.name == "ordering":
        return _ordered(direction)
    target = _needed(published if rule.value is None else rule.value, rule)
    return _around(rule, target, direction, _needed(rule.tolerated(floor), rule))


def outcome_of_steps(rule: Rule, estimate: Estimate, direction: Direction | None) -> Outcome:
    """Ordering of several arms, or a trend along x: every step must be shown, and one step the other way refutes it.

    Both ways at the same level of 5 %, two-sided: all steps must be significant together, an intersection-union test,
    which needs no correction; any one of them can refute, so that Holm's correction holds the level for them.
    """
    expected = _expected_direction(rule, direction)
    differences = [step.difference for step in estimate.steps]
    against = _steps_against(differences, "lower" if expected == "higher" else "higher")
    findings = [difference.finding for difference in differences]
    accepted_findings = {expected} if rule.strict else {expected, "no difference"}
    facts = StepsFacts(
        along=rule.along if rule.name == "monotone" else None,
        trend=rule.trend if rule.name == "monotone" else None,
        strict=rule.strict,
        direction=direction,
        wanted=expected,
        steps=estimate.steps,
        against=against[0] if against else None,
        open_steps=sum(finding != expected for finding in findings),
        launches=estimate.n,
        correlation=estimate.trend,
    )
    if against:
        return Outcome(verdict="not reproduced", reason=Reason.STEP_AGAINST, facts=facts)
    if expected in findings and accepted_findings.issuperset(findings):
        return Outcome(verdict="reproduced", reason=Reason.EVERY_STEP, facts=facts)
    return Outcome(verdict="inconclusive", reason=Reason.STEPS_OPEN, facts=facts)


def _steps_against(differences: Sequence[Difference], opposite: Finding) -> list[int]:
    """Steps that are the other way round, after Holm's correction over all steps. Predictions are not sampled and have
    no p-value: the finding from their spread stands."""

    def p_value(difference: Difference) -> float:
        if difference.finding != opposite:
            return 1.0
        return 1.0 if difference.p_value is None else difference.p_value

    adjusted = holm([p_value(difference) for difference in differences])
    return [
        index
        for index, (difference, p) in enumerate(zip(differences, adjusted, strict=True))
        if difference.finding == opposite and (difference.p_value is None or p <= 1 - CONFIDENCE)
    ]


def _expected_direction(rule: Rule, direction: Direction | None) -> Literal["higher", "lower"]:
    """How each arm must differ from the one before it."""
    if rule.name == "monotone":
        return "higher" if rule.trend == "rising" else "lower"
    if direction is None:
        raise SpecError("rule 'ordering' needs a direction, 'higher' or 'lower'")
    return "lower" if direction == "higher" else "higher"


def _outcome_of_interval(rule: Rule, region: Region, estimate: Estimate, published: float | None) -> Outcome:
    facts = _interval_facts(rule, region, estimate, published)
    if facts.position is None:
        few = facts.launches < smallest_count()
        reason = Reason.TOO_FEW_LAUNCHES if few else Reason.NO_INTERVAL
        return Outcome(verdict="inconclusive", reason=reason, facts=facts)
    if facts.position == "straddles":
        return Outcome(verdict="inconclusive", reason=Reason.STRADDLES, facts=facts)
    if undecided := _undecided_reason(rule, region, estimate, facts.position):
        return Outcome(verdict="inconclusive", reason=undecided, facts=facts)
    if facts.position == "outside" and _same_side(facts, estimate.within_noise):
        return Outcome(verdict="direction only", reason=Reason.SAME_DIRECTION, facts=facts)
    verdict, reason = BY_POSITION[facts.position]
    return Outcome(verdict=verdict, reason=reason, facts=facts)


def _interval_facts(rule: Rule, region: Region, estimate: Estimate, published: float | None) -> IntervalFacts:
    interval, difference = estimate.interval, estimate.difference
    above = None
    if rule.neutral is not None and published is not None and published != rule.neutral:
        above = published > rule.neutral
    return IntervalFacts(
        ours=estimate.ours,
        region=region,
        interval=interval,
        launches=estimate.n or 0,
        sides=rule.sides,
        position=region.position(interval.low, interval.high) if interval else None,
        test=difference.test if difference else None,
        test_counts=difference.n if difference else None,
        p_value=difference.p_value if difference else None,
        finding=difference.finding if difference else None,
        floor=estimate.floor,
        floor_matters=estimate.floor is not None or estimate.floor_unknown,
        neutral=rule.neutral,
        published_above_neutral=above,
    )


def _undecided_reason(rule: Rule, region: Region, estimate: Estimate, position: Position) -> Reason | None:
    """Why a value is inconclusive although its interval lies on one side; None where it decides."""
    difference = estimate.difference
    noise = (estimate.ours, estimate.ours) if rule.allows_for(estimate.floor) else estimate.within_noise
    if region.position(*noise) != position:
        return Reason.WITHIN_FLOOR
    if difference is None:
        return None
    if rule.name == "ordering" and difference.p_value is not None and difference.p_value > 1 - CONFIDENCE:
        return Reason.NOT_SIGNIFICANT
    return None


def _same_side(facts: IntervalFacts, within_noise: tuple[float, float]) -> bool:
    """Whether the whole interval is on the side of the neutral value that the published value is on, and further from
    it than the noise could move the value."""
    if facts.neutral is None or facts.interval is None or facts.published_above_neutral is None:
        return False
    if facts.published_above_neutral:
        return min(facts.interval.low, *within_noise) > facts.neutral
    return max(facts.interval.high, *within_noise) < facts.neutral


def _outcome_of_every_launch(region: Region, estimate: Estimate) -> Outcome:
    """An identity must hold in every launch: the extremes decide, not the median, and one launch is enough to refute
    it. A time counts as inside or outside only where the noise could not have moved it across the bound."""
    values = estimate.values
    positions = [region.position(*estimate.moved_by_noise(value)) for value in values]
    facts = LaunchesFacts(
        region=region,
        launches=len(values),
        low=min(values),
        high=max(values),
        outside=positions.count("outside"),
        floor=estimate.floor,
    )
    if facts.outside:
        return Outcome(verdict="not reproduced", reason=Reason.OUTSIDE, facts=facts)
    if len(values) < smallest_count():
        return Outcome(verdict="inconclusive", reason=Reason.TOO_FEW_LAUNCHES, facts=facts)
    if "straddles" in positions:
        return Outcome(verdict="inconclusive", reason=Reason.WITHIN_FLOOR, facts=facts)
    return Outcome(verdict="reproduced", reason=Reason.INSIDE, facts=facts)


def _between(rule: Rule) -> Region:
    if rule.one_sided and rule.high is None:
        return Region(bound=Bound.AT_LEAST, low=_needed(rule.low, rule), high=math.inf, times_base=True)
    if rule.one_sided and rule.low is None:
        return Region(bound=Bound.AT_MOST, low=-math.inf, high=_needed(rule.high, rule), times_base=True)
    low, high = _needed(rule.low, rule), _needed(rule.high, rule)
    return Region(bound=Bound.BETWEEN, low=low, high=high, times_base=True)


def _ordered(direction: Direction | None) -> Region:
    if direction == "lower":
        return Region(bound=Bound.BELOW_BASE, low=-math.inf, high=math.nextafter(1, 0), times_base=True)
    if direction == "higher":
        return Region(bound=Bound.ABOVE_BASE, low=math.nextafter(1, 2), high=math.inf, times_base=True)
    raise SpecError("rule 'ordering' needs a direction, 'higher' or 'lower'")


def _around(rule: Rule, target: float, direction: Direction | None, tolerance: float) -> Region:
    share = tolerance if rule.name == "within" or rule.relative else None
    reach = tolerance if share is None else share * abs(target)
    low, high = target - reach, target + reach
    bound = Bound.WITHIN
    if rule.one_sided:
        bound = Bound.WITHIN_OR_BETTER
        if direction is None:
            raise SpecError(f"a one-sided rule {rule.name!r} needs a direction")
        low, high = (low, math.inf) if direction == "higher" else (-math.inf, high)
    return Region(bound=bound, low=low, high=high, target=target, reach=reach, share=share)


def _needed(value: float | None, rule: Rule) -> float:
    if value is None:
        raise SpecError(f"rule {rule.name!r} has nothing to compare with: no published value and no 'value'")
    return float(value)
