"""The values that launches would have if a claim clearly held, and if it clearly failed, and how large an effect it
states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.claim_form import ORDERS, Rule
from scaleproof.claims.claims_yaml import Claim
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import base_metric
from scaleproof.claims.outcome import Region
from scaleproof.claims.verdict_rules import accepted_region
from scaleproof.core.record_schema import Evidence
from scaleproof.spec.case import AnyCase

TYPICAL = {"s": 0.01, "nat": 1.0, "fraction": 0.5, "x": 1.0, "1": 1.0}
"""A value by unit for the base of a ratio; of rates and counts 1000."""


@dataclass(frozen=True, slots=True)
class Side:
    """Launches of the selected cases, at one level of evidence (None: at any), and the value that all of them have;
    None: they are the base of pairs. `ranked`: times the ratio of their ranks to this number."""

    select: Mapping[str, Any]
    value: float | None
    evidence: Evidence | None = None
    ranked: bool = False

    def value_of(self, case: AnyCase) -> float | None:
        """The value of a launch of this case."""
        return self.value * case.ranks if self.ranked and self.value is not None else self.value


@dataclass(frozen=True, slots=True)
class Aim:
    """Values of a claim's number: one that holds, and some that fail, of which a launch may not be able to have all."""

    holds: float
    fails: tuple[float, ...]


def stated_effect(claim: Claim) -> float | None:
    """By which share the claim's own number lies from the nearest value that its rule refuses, or arms of an order from
    each other; None where it states no number, such as a bound of a time without `effect`, and for counts of what lies
    beyond the floor, which are no share of a time."""
    rule, metric = claim.form.rule, claim.metric
    if rule is None or metric is None or metric.noise == "inside":
        return None
    if rule.effect is not None:
        return rule.effect
    if rule.name in ORDERS:
        return _published_ratio(claim) if rule.name == "ordering" else None
    if rule.tolerance == "floor":
        return rule.largest_floor
    region, (least, most) = accepted_region(rule, claim.published, claim.direction), metric.possible
    number = _own_number(claim, rule, region)
    bounds = [bound for bound in (region.low, region.high) if least < bound < most]
    if number is None or not bounds:
        return None
    if metric.noise == "added":
        return min(abs(bound - number) for bound in bounds)
    number, *bounds = (_as_ratio(claim, value) for value in (number, *bounds))
    if min(number, *bounds) <= 0:
        return None
    return min(max(bound / number, number / bound) for bound in bounds) - 1


def _published_ratio(claim: Claim) -> float | None:
    """By which share two arms differ in the paper."""
    ratio = claim.published if claim.unit == "x" and not claim.form.arms else None
    return None if not ratio or ratio < 0 or ratio == 1 else max(ratio, 1 / ratio) - 1


def _own_number(claim: Claim, rule: Rule, region: Region) -> float | None:
    """The target of the rule, else the published value where the rule accepts it, else the middle of two bounds. A
    claim that states one bound alone is compared with no effect, unless that is the bound; a least value of what has a
    largest one, as a share has, with that."""
    published, ends = claim.published, (region.low, region.high)
    if region.target is not None:
        return region.target
    if published is not None and published not in ends and region.position(published, published) == "inside":
        return published
    if all(map(math.isfinite, ends)):
        return _centre(region)
    neutral = _neutral(claim, rule)
    if neutral is None and claim.metric is not None and claim.metric.noise in ("added", "gain"):
        neutral = 0.0
    if neutral is not None and neutral not in ends:
        return neutral
    largest = claim.metric.possible[1] if claim.metric is not None else math.inf
    return largest if largest < region.high else None


def _as_ratio(claim: Claim, value: float) -> float:
    """Noise moves the ratio of which a value is the gain, and any other value itself."""
    return 1 + value / 100 if claim.metric is not None and claim.metric.noise == "gain" else value


def clear_factor(claim: Claim, noisy: float) -> float:
    """By which factor values differ in launches that clearly hold a claim and such that clearly fail it: by the effect
    that the claim states; `noisy`, which this noise cannot hide, where it states none."""
    effect = stated_effect(claim) if claim.metric is not None and claim.metric.noise == "factor" else None
    return noisy if effect is None else 1 + effect


def aim(claim: Claim, metric: Metric, clear: float, floor: float | None) -> Aim:
    """Values that hold: the claim's own number, or one beyond its bound by the factor `clear`; and some that fail: no
    effect at all, or beyond a bound by this factor. `floor`: the machine's noise floor, which may be the tolerance."""
    rule = claim.form.rule
    assert rule is not None
    region = accepted_region(rule, claim.published, claim.direction, floor)
    least, most = metric.possible
    if metric.noise == "added" and math.isfinite(region.high):
        further = region.high + 2 * (clear - 1)
        return Aim(0.0, (min(further, 1 - typical(base_metric(metric))) if metric.points else further,))
    inward = [value for value in _held(claim, rule, region, clear) if least <= value <= most]
    neutral = _neutral(claim, rule)
    outward = [] if neutral is None else [neutral]
    for bound, end in ((region.high, most), (region.low, least)):
        if math.isfinite(bound):
            outward += _beyond(bound, end > bound, clear, region.reach, end)
    fails = [value for value in outward if least <= value <= most and region.position(value, value) == "outside"]
    return Aim(inward[0] if inward else math.nan, tuple(fails))


def sides(claim: Claim, metric: Metric, value: float, control: float) -> list[Side]:
    """Who has which value, so that the claim's number is `value` and that of its control is `control`; where two
    selections share a case, the first one counts."""
    form, base = claim.form, typical(base_metric(metric))
    levels = form.base_evidence
    made = list(_compared(metric, form.select, form.against, value, base, levels))
    if form.control is not None:
        against = form.control.against or form.against
        made += _compared(metric, form.control.select, against, control, base, levels)
    return made


def sides_of_case(claim: Claim, metric: Metric, value: float, case: Mapping[str, Any]) -> list[Side]:
    """Who has which value, so that the claim's number is `value` in the case with these fields."""
    form, base = claim.form, typical(base_metric(metric))
    against = None if form.against is None else {**form.against, **case}
    return list(_compared(metric, {**form.select, **case}, against, value, base, form.base_evidence))


def ordered_sides(metric: Metric, selects: Sequence[Mapping[str, Any]], values: Sequence[float]) -> list[Side]:
    """Each arm with its value, as a multiple of a typical one."""
    base = typical(base_metric(metric))
    return [Side(select, base * value) for select, value in zip(selects, values, strict=True)]


def typical(metric: Metric) -> float:
    """A value that launches may have."""
    return TYPICAL.get(metric.unit, 1000.0)


def _compared(
    metric: Metric,
    select: Mapping[str, Any],
    against: Mapping[str, Any] | None,
    value: float,
    base: float,
    levels: Evidence | None,
) -> Iterator[Side]:
    if against is None or metric.block is not None:
        yield Side(select, value)
    elif metric.pair is not None:
        yield Side(select, value)
        yield Side(against, None)
    else:
        share = 1 + (value / base if metric.points else value) if metric.apart is not None else value
        if levels is not None:
            yield Side(against, base, levels)
        yield Side(select, base * share, None, metric.scaled_by_ranks)
        yield Side(against, base, levels, metric.scaled_by_ranks)


def _held(claim: Claim, rule: Rule, region: Region, clear: float) -> Iterator[float]:
    """Values that hold, the preferred first."""
    number = None if rule.name in ORDERS else _own_number(claim, rule, region)
    if number is not None and region.position(number, number) == "inside":
        yield number
    assert claim.metric is not None
    yield _inside(region, clear, *claim.metric.possible)


def _inside(region: Region, clear: float, least: float, most: float) -> float:
    """A value well inside of what is accepted."""
    if math.isfinite(region.low) and math.isfinite(region.high):
        return _centre(region)
    up = math.isfinite(region.low)
    bound, end = (region.low, most) if up else (region.high, least)
    value = _beyond(bound, up, clear, None, end)[0]
    past = value > end if up else value < end
    return (bound + end) / 2 if past else value


def _centre(region: Region) -> float:
    if region.target is not None:
        return region.target
    return math.sqrt(region.low * region.high) if region.low > 0 else (region.low + region.high) / 2


def _beyond(bound: float, up: bool, clear: float, reach: float | None, end: float) -> list[float]:
    """Values past a bound on the way to the end of the possible ones, the preferred first."""
    if math.isfinite(end) and end != 0:
        return [(bound + end) / 2, end]
    further = clear if up else 1 / clear
    step = (1 if up else -1) * (9 * reach if reach else 1.0)
    return [bound * further if bound > 0 and not reach else bound + step, bound + step / 2, 0.0]


def _neutral(claim: Claim, rule: Rule) -> float | None:
    """The value without an effect: the rule's own, or 1 for a ratio, to a base or within each launch."""
    if rule.neutral is not None:
        return rule.neutral
    is_ratio = claim.unit == "x" and claim.metric is not None and claim.metric.apart is None
    return 1.0 if is_ratio and rule.name != "ordering" else None
