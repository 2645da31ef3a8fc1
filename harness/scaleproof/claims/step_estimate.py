"""Several arms, each compared with the one before it, for a claimed order or a claimed trend along x."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.arm_values import Values, arm_difference, finite_values, launch_ids, numbers
from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.noise_floor import base_metric
from scaleproof.claims.outcome import StepFacts
from scaleproof.claims.question import Measurement, Question, usable_launches
from scaleproof.claims.verdict_rules import Estimate
from scaleproof.core.record_schema import Evidence
from scaleproof.stats.intervals import median
from scaleproof.stats.summary import Trend, trend


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: the fields in which its case differs from the others, and the values of its launches."""

    fields: dict[str, Any]
    values: Values


def estimate_steps(
    question: Question, pool: Pool, evidence: Evidence, value_of: Callable[[Launch], float | None]
) -> Measurement | None:
    """`ours` is the last arm over the first; None where an arm has no launches."""
    arms = _arms_with_values(question, pool, evidence, value_of)
    if len(arms) < 2 or len(arms) < len(question.arms):
        return None
    first, last = arms[0], arms[-1]
    difference = arm_difference(last.values, first.values, question.floor.share)
    if difference.ratio is None:
        return None
    estimate = Estimate(
        difference.ratio,
        difference.interval,
        min(len(arm.values) for arm in arms),
        difference=difference,
        steps=_steps(arms, question.floor.share),
        trend=_trend(arms),
    )
    runs = tuple(launch for arm in arms for launch in launch_ids(arm.values))
    return Measurement(estimate, runs, _base(question, first), tuple((arm.fields, arm.values) for arm in arms))


def _steps(arms: Sequence[Arm], floor: float | None) -> tuple[StepFacts, ...]:
    return tuple(
        StepFacts(
            before=before.fields, after=after.fields, difference=arm_difference(after.values, before.values, floor)
        )
        for before, after in zip(arms, arms[1:], strict=False)
    )


def _trend(arms: Sequence[Arm]) -> Trend | None:
    """Over all launches, with the position of their arm as x."""
    points = [(position, value) for position, arm in enumerate(arms) for value in numbers(arm.values)]
    return trend([position for position, _ in points], [value for _, value in points])


def _base(question: Question, first: Arm) -> BaseOut:
    return BaseOut(
        select={**question.select, **first.fields},
        value=median(numbers(first.values)),
        unit=base_metric(question.metric).unit,
        n=len(first.values),
    )


def _arms_with_values(
    question: Question, pool: Pool, evidence: Evidence, value_of: Callable[[Launch], float | None]
) -> list[Arm]:
    arms = [
        Arm(fields, finite_values(launches, value_of)) for fields, launches in _arm_launches(question, pool, evidence)
    ]
    return [arm for arm in arms if arm.values]


def _arm_launches(question: Question, pool: Pool, evidence: Evidence) -> list[tuple[dict[str, Any], list[Launch]]]:
    if question.arms:
        return [
            (dict(arm), usable_launches(question, pool, {**question.select, **arm}, evidence)) for arm in question.arms
        ]
    along, grouped = str(question.along), dict[Any, list[Launch]]()
    for launch in usable_launches(question, pool, question.select, evidence):
        grouped.setdefault(launch.record.case.value(along), []).append(launch)
    return [({along: x}, grouped[x]) for x in sorted(grouped)]
