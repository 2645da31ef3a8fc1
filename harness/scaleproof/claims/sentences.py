"""The sentences of outcomes, for claims.json and the pages. They are made here alone; no code reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.claims.difference_sentences import (
    NO_FLOOR,
    difference_sentence,
    method_sentence,
    test_description,
)
from scaleproof.claims.outcome import (
    ArithmeticFacts,
    Bound,
    ControlFinding,
    IntervalFacts,
    LaunchesFacts,
    Outcome,
    PointFacts,
    RangeFacts,
    Reason,
    Region,
    StepsFacts,
)
from scaleproof.stats.arm_difference import DifferenceTest
from scaleproof.stats.intervals import CONFIDENCE, Interval, Method, smallest_count
from scaleproof.stats.many_tests import blocks_needed
from scaleproof.stats.never import is_never

WITHOUT_FACTS = {
    Reason.RECALLED: "the published value is known from memory only: nothing is judged",
    Reason.NOT_RECOVERED: "the figure was published, but we do not have it: nothing to compare with",
    Reason.UNSERVED: "nothing of this version serves it",
    Reason.NOTHING_MEASURED: "nothing was measured",
    Reason.NO_FLOOR: f"the tolerance is the noise floor of this machine for these launches, and {NO_FLOOR}",
}
_OF_CONTROLS: dict[ControlFinding, str] = {
    "effect": "shows the effect too",
    "no effect": "does not show the effect",
    "no difference": "shows no difference",
    "less effect": "shows less of the effect, all of its interval is nearer to 1",
    "undecided": "decides nothing",
    "not measured": "could not be judged",
}
_NOT_OF_LAUNCHES = (
    Method.PREDICTION,
    Method.PREDICTION_CUT,
    Method.CERTAIN_INPUTS,
    Method.ORDER_STATISTICS_OF_CASES,
)


def rule_sentence(outcome: Outcome) -> str:
    """How the verdict follows from the numbers: the numbers, the bound, and which side they are on."""
    return "; ".join([finding_sentence(outcome), *clause_sentences(outcome), *control_sentences(outcome)])


def finding_sentence(outcome: Outcome) -> str:
    """The sentence about what decided."""
    facts = outcome.facts
    if isinstance(facts, ArithmeticFacts):
        return _of_arithmetic(outcome.reason, facts)
    if isinstance(facts, LaunchesFacts):
        return _every_launch(outcome.reason, facts)
    if isinstance(facts, IntervalFacts):
        return _by_interval(outcome.reason, facts)
    if isinstance(facts, StepsFacts):
        return _by_steps(outcome.reason, facts)
    if isinstance(facts, RangeFacts):
        return _over_range(outcome.reason, facts)
    return WITHOUT_FACTS[outcome.reason]


def _of_arithmetic(reason: Reason, facts: ArithmeticFacts) -> str:
    verb = "is" if reason is Reason.INSIDE else "is not"
    if facts.largest is None:
        return f"{number(facts.ours)} {verb} {region_text(facts.region)}"
    ends = f"{number(facts.ours)} to {number(facts.largest)}, over what is known of the conditions,"
    if reason is Reason.STRADDLES:
        return f"{ends} is in part {region_text(facts.region)}, in part not"
    return f"{ends} {verb} {region_text(facts.region)}"


def clause_sentences(outcome: Outcome) -> list[str]:
    """The sentences about what the finding follows from: every step, case or point of a range, launches, intervals."""
    facts = outcome.facts
    if isinstance(facts, ArithmeticFacts):
        return ["arithmetic, no launches"]
    if isinstance(facts, IntervalFacts):
        return [_basis(facts, facts.interval)] if facts.interval else []
    if isinstance(facts, StepsFacts):
        steps = [
            f"{_step(facts, index)}: {difference_sentence(step.difference)}" for index, step in enumerate(facts.steps)
        ]
        basis = f"{facts.launches} launches an arm or more, one-sided rule{_correlation(facts)}"
        return [*steps, basis, *_too_few_to_refute(outcome.reason, facts)]
    if isinstance(facts, RangeFacts):
        return _points(facts)
    return []


def control_sentences(outcome: Outcome) -> list[str]:
    """The sentences about the negative control; none where the claim has no control."""
    control = outcome.control
    if control is None:
        return []
    found = _OF_CONTROLS[control.finding or "undecided"]
    rule = rule_sentence(control.outcome) if control.outcome else "nothing was measured"
    return [f"{'but ' if control.overrules else ''}the control {found}: {rule}"]


def not_judged_sentence(size: str, no_verdicts: bool) -> str:
    """Why a claim has no verdict: its size has none, or its kind."""
    return f"size {size} gives no verdicts" if no_verdicts else "shown, never judged"


def region_text(region: Region) -> str:
    """The values that a rule accepts."""
    base = " times the base" if region.times_base else ""
    if region.bound is Bound.AT_LEAST:
        return f"at least {number(region.low)}{base}"
    if region.bound is Bound.AT_MOST:
        return f"at most {number(region.high)}{base}"
    if region.bound is Bound.BETWEEN:
        return f"between {number(region.low)} and {number(region.high)}{base}"
    if region.bound is Bound.BELOW_BASE:
        return f"below 1{base}"
    if region.bound is Bound.ABOVE_BASE:
        return f"above 1{base}"
    reach = number(region.reach or 0.0) if region.share is None else _percent(region.share)
    better = " or better" if region.bound is Bound.WITHIN_OR_BETTER else ""
    return f"within {reach} of {number(region.target or 0.0)}{better}"


def fields_text(fields: Mapping[str, Any], between: str = " ") -> str:
    """Fields of a case with their values."""
    return ", ".join(
        f"{name}{between}{number(value) if isinstance(value, float) else value}" for name, value in fields.items()
    )


def number(value: float) -> str:
    """Six significant digits: enough to check a rule by hand. Of launches without a number, and ratios with them, the
    bound that no number reaches."""
    if is_never(value):
        return "infinity" if abs(value) > 1 else "0"
    return f"{value:.6g}"


def _every_launch(reason: Reason, facts: LaunchesFacts) -> str:
    values = f"{facts.launches} launches from {number(facts.low)} to {number(facts.high)}"
    accepted = region_text(facts.region)
    if reason is Reason.OUTSIDE:
        return f"{values}: {facts.outside} of them not {accepted}"
    if reason is Reason.TOO_FEW_LAUNCHES:
        return f"{values}: every one {accepted}, but {_too_few(facts.launches)}"
    if reason is Reason.WITHIN_FLOOR:
        return f"{values} against {accepted}: some are closer to the bound than {_floor(facts.floor)}"
    return f"{values}: every one {accepted}{f', but {NO_FLOOR}' if reason is Reason.NO_FLOOR else ''}"


def _by_interval(reason: Reason, facts: IntervalFacts) -> str:
    accepted = region_text(facts.region)
    if facts.interval is None:
        few = "it has no interval" if reason is Reason.NO_INTERVAL else _too_few(facts.launches)
        return f"{number(facts.ours)} against {accepted}: {few}"
    value = f"{number(facts.ours)} in [{number(facts.interval.low)}, {number(facts.interval.high)}]"
    if reason is Reason.STRADDLES:
        return f"{value}: part of it {accepted}, part not"
    position = f"{value}: {'all' if facts.position == 'inside' else 'none'} of it {accepted}"
    if reason is Reason.WITHIN_FLOOR:
        return f"{position}, but it is closer to the bound than {_floor(facts.floor)}"
    if reason is Reason.NO_FLOOR:
        return f"{position}, but {NO_FLOOR}"
    if reason is Reason.NOT_SIGNIFICANT and facts.test is not None:
        return (
            f"{position}, but the {test_description(facts.test, facts.test_counts or ())} gives p = {facts.p_value:.2g}"
        )
    if reason is Reason.SAME_DIRECTION:
        side = "above" if facts.published_above_neutral else "below"
        return f"{position}, all of it {side} {number(facts.neutral or 0.0)} as published"
    return position


def _basis(facts: IntervalFacts, interval: Interval) -> str:
    behind = method_sentence(interval) if interval.method in _NOT_OF_LAUNCHES else f"{facts.launches} launches"
    floor = ""
    if facts.floor_matters:
        floor = f", {NO_FLOOR}" if facts.floor is None else f", noise floor {100 * facts.floor:.3g} %"
    return f"{behind}, {interval.coverage:.1%} interval, {facts.sides} rule{floor}"


def _by_steps(reason: Reason, facts: StepsFacts) -> str:
    claimed = f"in the order claimed, {facts.direction} is better"
    if facts.along is not None:
        claimed = f"{'strictly ' if facts.strict else ''}{facts.trend} along {facts.along}"
    if reason is Reason.STEP_AGAINST:
        return f"{claimed}: not from {_step(facts, facts.against or 0)}"
    if reason is Reason.EVERY_STEP:
        return f"{claimed}: in every step"
    return f"{claimed}: {facts.open_steps} of {len(facts.steps)} steps are not found"


def _too_few_to_refute(reason: Reason, facts: StepsFacts) -> list[str]:
    """Why a step that is the other way round does not refute: too few blocks for so many steps."""
    opposite = "lower" if facts.wanted == "higher" else "higher"
    differences = [step.difference for step in facts.steps]
    paired = all(difference.test is DifferenceTest.SIGNED_RANK for difference in differences)
    needed = blocks_needed(len(differences))
    blocks = min(min(difference.n) for difference in differences)
    turned = any(difference.finding == opposite for difference in differences)
    if reason is not Reason.STEPS_OPEN or not (paired and turned) or blocks >= needed:
        return []
    return [f"{blocks} blocks cannot refute an order of {len(differences)} steps, {needed} can (Holm)"]


def _step(facts: StepsFacts, index: int) -> str:
    step = facts.steps[index]
    before, after = (", ".join(f"{name}={value}" for name, value in arm.items()) for arm in (step.before, step.after))
    return f"{before} to {after}"


def _correlation(facts: StepsFacts) -> str:
    if facts.correlation is None:
        return ""
    trend = facts.correlation
    return f", Kendall's tau {trend.tau:.2f} over all launches (p = {trend.p_value:.2g})"


def _over_range(reason: Reason, facts: RangeFacts) -> str:
    count = len(facts.points)
    if reason is Reason.POINT_DECIDES:
        first, *others = facts.worst
        verdict = first.outcome.verdict if first.outcome else ""
        return f"{verdict} in {1 + len(others)} of {count} cases ({fields_text(first.at)}){_each_tested(facts)}"
    if reason is Reason.RANGE_INCOMPLETE:
        first = facts.missing[0]
        where = "points of the range" if facts.unknown else "cases"
        return f"{len(facts.missing)} of {count} {where} have no value ({fields_text(first.at)})"
    if reason is Reason.RANGE_DISAGREES:
        return f"the verdict does not hold over the whole range of {count} points{_each_tested(facts)}"
    where = f"at all {count} points of the range" if facts.unknown else f"in each of {count} cases"
    return f"the same {where}{_each_tested(facts)}"


def _each_tested(facts: RangeFacts) -> str:
    """The level of each point's test; empty where nothing is tested (identities). A range of which the true point is
    not known needs no correction: all points must agree, either way."""
    if not any(point.outcome and isinstance(point.outcome.facts, IntervalFacts | StepsFacts) for point in facts.points):
        return ""
    return f", each tested at its own {CONFIDENCE:.0%}".replace("%", " %") + ("" if facts.unknown else ", uncorrected")


def _points(facts: RangeFacts) -> list[str]:
    """The sentence of each point; one sentence where the facts of all points are equal."""
    decided = [(point, point.outcome) for point in facts.decided if point.outcome is not None]
    first = decided[0][1]
    if all(outcome == first for _, outcome in decided):
        return [rule_sentence(first)]
    return [_point(point, outcome) for point, outcome in decided]


def _point(point: PointFacts, outcome: Outcome) -> str:
    return f"{fields_text(point.at)}: {rule_sentence(outcome)}"


def _too_few(launches: int) -> str:
    return f"{launches} launches give no 95 % interval, {smallest_count()} do"


def _floor(floor: float | None) -> str:
    return f"the noise floor of {100 * (floor or 0.0):.3g} %"


def _percent(share: float) -> str:
    return f"{share:.3%}".rstrip("%").rstrip("0").rstrip(".") + " %"
