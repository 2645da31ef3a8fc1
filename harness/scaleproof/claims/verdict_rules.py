"""Rules that turn an estimate into a verdict. Pure functions: an interval decides, and one that straddles a bound
decides nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scaleproof.claims.claim_form import Direction, Rule
from scaleproof.claims.claims_file import Verdict
from scaleproof.claims.level_difference import METHOD as OVER_CASES
from scaleproof.spec.errors import SpecError
from scaleproof.stats.compare import NO_FLOOR, Difference
from scaleproof.stats.intervals import CONFIDENCE, Interval, smallest_count
from scaleproof.stats.predictions import METHODS, TEST
from scaleproof.stats.summary import Trend

Position = Literal["inside", "outside", "straddles"]
CONTROL = "the control"
"""How a rule's words on its negative control begin."""


@dataclass(frozen=True, slots=True)
class Step:
    """One arm against the one before it."""

    label: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class Estimate:
    """What we found. `values`: one per launch where the metric is per launch; n is None for arithmetic, which needs no
    interval.

    `timing` says whether the machine's noise floor matters, `floor` is that floor (None: not measured). Of a ratio:
    `difference` is the test behind it. Of several arms: `steps`, each arm against the one before, and `trend` over all
    of them; `ours` is then the last arm over the first.
    """

    ours: float
    interval: Interval | None
    n: int | None
    values: tuple[float, ...] = ()
    difference: Difference | None = None
    floor: float | None = None
    timing: bool = False
    steps: tuple[Step, ...] = ()
    trend: Trend | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict and the rule in words: the numbers, the bound, and which side they are on."""

    verdict: Verdict
    rule: str

    @property
    def holds(self) -> bool:
        """Whether the effect that the rule describes is there."""
        return self.verdict == "reproduced"


@dataclass(frozen=True, slots=True)
class Region:
    """Accepted values and the words for them."""

    low: float
    high: float
    words: str

    def position(self, low: float, high: float) -> Position:
        """Where an interval lies; a bound belongs to the region."""
        if self.low <= low and high <= self.high:
            return "inside"
        return "outside" if high < self.low or low > self.high else "straddles"


def judge(rule: Rule, estimate: Estimate, published: float | None, direction: Direction | None) -> Outcome:
    """Apply a rule. Raises SpecError when it needs a published value or a direction that is not there."""
    if estimate.steps:
        return by_steps(rule, estimate, direction)
    region = accepted(rule, published, direction)
    if estimate.n is None:
        inside = region.position(estimate.ours, estimate.ours) == "inside"
        found = (
            f"{number(estimate.ours)} is {region.words}" if inside else f"{number(estimate.ours)} is not {region.words}"
        )
        return Outcome("reproduced" if inside else "not reproduced", f"{found}; arithmetic, no launches")
    if rule.name == "equal_to_tolerance":
        return _every_launch(region, estimate)
    if estimate.interval is None:
        return Outcome("inconclusive", f"{number(estimate.ours)} against {region.words}: {_too_few(estimate.n)}")
    return _by_interval(rule, region, estimate, estimate.interval, published)


def accepted(rule: Rule, published: float | None, direction: Direction | None) -> Region:
    """The values that a rule accepts."""
    if rule.name == "at_least":
        bound = _given(rule.value, rule)
        return Region(bound, math.inf, f"at least {number(bound)}")
    if rule.name == "at_most":
        bound = _given(rule.value, rule)
        return Region(-math.inf, bound, f"at most {number(bound)}")
    if rule.name == "ratio":
        return _between(rule)
    if rule.name == "ordering":
        return _ordered(direction)
    target = _given(published if rule.value is None else rule.value, rule)
    reach = _given(rule.tolerance, rule) * (abs(target) if rule.name == "within" or rule.relative else 1)
    return _around(rule, target, reach, direction)


def with_control(outcome: Outcome, control: Outcome | None) -> Outcome:
    """The verdict with what the negative control says: one that shows the effect too takes away what a positive verdict
    rests on."""
    if control is None:
        return Outcome(outcome.verdict, f"{outcome.rule}; {CONTROL} could not be judged: nothing was measured")
    if not control.holds:
        told = "decides nothing" if control.verdict == "inconclusive" else "does not show the effect"
        return Outcome(outcome.verdict, f"{outcome.rule}; {CONTROL} {told}: {control.rule}")
    positive = outcome.verdict in ("reproduced", "direction only")
    words = f"{outcome.rule}; {'but ' if positive else ''}{CONTROL} shows the effect too: {control.rule}"
    return Outcome("inconclusive" if positive else outcome.verdict, words)


def by_steps(rule: Rule, estimate: Estimate, direction: Direction | None) -> Outcome:
    """Ordering of several arms, or a trend along x: every step must be found, and one step found the other way refutes
    it.

    A step is found at 95 %; to refute, its p-value times the number of steps must do, since any of them can.
    """
    wanted, claimed = _wanted(rule, direction)
    unwanted = "lower" if wanted == "higher" else "higher"
    told = "; ".join(f"{step.label}: {step.difference.why}" for step in estimate.steps)
    found = [step.difference.finding for step in estimate.steps]
    # Predictions are not sampled: they have no p-value, and what their spread says stands.
    chances = [
        0.0 if step.difference.test == TEST else (step.difference.p_value or 1.0) * len(found)
        for step in estimate.steps
    ]
    against = [
        step.label
        for step, chance in zip(estimate.steps, chances, strict=True)
        if step.difference.finding == unwanted and chance <= 1 - CONFIDENCE
    ]
    basis = f"{estimate.n} launches an arm or more, one-sided rule{_trend_in_words(estimate.trend)}"
    if against:
        return Outcome("not reproduced", f"{claimed}: not from {against[0]}; {told}; {basis}")
    if (
        all(finding == wanted or (finding == "no difference" and not rule.strict) for finding in found)
        and wanted in found
    ):
        return Outcome("reproduced", f"{claimed}: in every step; {told}; {basis}")
    open_steps = sum(finding != wanted for finding in found)
    return Outcome("inconclusive", f"{claimed}: {open_steps} of {len(found)} steps are not found; {told}; {basis}")


def _wanted(rule: Rule, direction: Direction | None) -> tuple[Literal["higher", "lower"], str]:
    """How each arm must differ from the one before it, and the claim in words."""
    if rule.name == "monotone":
        wanted: Literal["higher", "lower"] = "higher" if rule.trend == "rising" else "lower"
        return wanted, f"{'strictly ' if rule.strict else ''}{rule.trend} along {rule.along}"
    if direction is None:
        raise SpecError("rule 'ordering' needs a direction, 'higher' or 'lower'")
    return ("lower" if direction == "higher" else "higher"), f"in the order claimed, {direction} is better"


def _trend_in_words(found: Trend | None) -> str:
    return f", Kendall's tau {found.tau:.2f} over all launches (p = {found.p_value:.2g})" if found else ""


def _by_interval(
    rule: Rule, region: Region, estimate: Estimate, interval: Interval, published: float | None
) -> Outcome:
    found = f"{number(estimate.ours)} in [{number(interval.low)}, {number(interval.high)}]"
    counted = interval.method if interval.method.startswith((*METHODS, OVER_CASES)) else f"{estimate.n} launches"
    basis = f"{counted}, {interval.coverage:.1%} interval, {rule.sides} rule{_floor_in_words(estimate)}"
    position = region.position(interval.low, interval.high)
    if position == "straddles":
        return Outcome("inconclusive", f"{found}: part of it {region.words}, part not; {basis}")
    if doubt := _doubt(rule, region, estimate, position):
        return Outcome(
            "inconclusive",
            f"{found}: {'all' if position == 'inside' else 'none'} of it {region.words}, but {doubt}; {basis}",
        )
    if position == "inside":
        return Outcome("reproduced", f"{found}: all of it {region.words}; {basis}")
    if rule.neutral is not None and published is not None and _same_side(interval, published, rule.neutral):
        side = "above" if published > rule.neutral else "below"
        return Outcome(
            "direction only",
            f"{found}: none of it {region.words}, all of it {side} {number(rule.neutral)} as published; {basis}",
        )
    return Outcome("not reproduced", f"{found}: none of it {region.words}; {basis}")


def _doubt(rule: Rule, region: Region, estimate: Estimate, position: Position) -> str:
    """Why a ratio must not decide although its interval does; empty when nothing speaks against it."""
    difference, floor = estimate.difference, estimate.floor
    if difference is None:
        return ""
    if floor and region.position(estimate.ours / (1 + floor), estimate.ours * (1 + floor)) != position:
        return f"it is closer to the bound than the noise floor of {100 * floor:.3g} %"
    if rule.name == "ordering" and difference.p_value is not None and difference.p_value > 1 - CONFIDENCE:
        return f"the {difference.test} gives p = {difference.p_value:.2g}"
    return ""


def _floor_in_words(estimate: Estimate) -> str:
    if estimate.difference is None or not estimate.timing or estimate.difference.test == TEST:
        return ""
    return f", {NO_FLOOR}" if estimate.floor is None else f", noise floor {100 * estimate.floor:.3g} %"


def _every_launch(region: Region, estimate: Estimate) -> Outcome:
    """An identity holds in every launch or it does not hold: the extremes decide, not the median, and one launch is
    enough to refute it."""
    low, high = min(estimate.values), max(estimate.values)
    outside = sum(region.position(value, value) != "inside" for value in estimate.values)
    found = f"{len(estimate.values)} launches from {number(low)} to {number(high)}"
    if outside:
        return Outcome("not reproduced", f"{found}: {outside} of them not {region.words}")
    if len(estimate.values) < smallest_count():
        return Outcome("inconclusive", f"{found}: every one {region.words}, but {_too_few(len(estimate.values))}")
    return Outcome("reproduced", f"{found}: every one {region.words}")


def _between(rule: Rule) -> Region:
    if rule.one_sided and rule.high is None:
        low = _given(rule.low, rule)
        return Region(low, math.inf, f"at least {number(low)} times the base")
    if rule.one_sided and rule.low is None:
        high = _given(rule.high, rule)
        return Region(-math.inf, high, f"at most {number(high)} times the base")
    low, high = _given(rule.low, rule), _given(rule.high, rule)
    return Region(low, high, f"between {number(low)} and {number(high)} times the base")


def _ordered(direction: Direction | None) -> Region:
    if direction == "lower":
        return Region(-math.inf, math.nextafter(1, 0), "below 1 times the base")
    if direction == "higher":
        return Region(math.nextafter(1, 2), math.inf, "above 1 times the base")
    raise SpecError("rule 'ordering' needs a direction, 'higher' or 'lower'")


def _around(rule: Rule, target: float, reach: float, direction: Direction | None) -> Region:
    low, high = target - reach, target + reach
    percent = rule.name == "within" or rule.relative
    by = f"{rule.tolerance:.3%}".rstrip("%").rstrip("0").rstrip(".") + " %" if percent else number(reach)
    if rule.one_sided:
        if direction is None:
            raise SpecError(f"a one-sided rule {rule.name!r} needs a direction")
        better = (low, math.inf) if direction == "higher" else (-math.inf, high)
        return Region(*better, f"within {by} of {number(target)} or better")
    return Region(low, high, f"within {by} of {number(target)}")


def _same_side(interval: Interval, published: float, neutral: float) -> bool:
    return interval.low > neutral if published > neutral else published < neutral and interval.high < neutral


def _given(value: float | None, rule: Rule) -> float:
    if value is None:
        raise SpecError(f"rule {rule.name!r} has nothing to compare with: no published value and no 'value'")
    return float(value)


def _too_few(launches: int | None) -> str:
    if launches is not None and launches >= smallest_count():
        return "it has no interval"
    return f"{launches} launches give no 95 % interval, {smallest_count()} do"


def number(value: float) -> str:
    """Six significant digits: enough to check a rule by hand."""
    return f"{value:.6g}"
