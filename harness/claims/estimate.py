"""From launches to one number with its interval: medians over launches, ratios of medians by bootstrap, differences between paired launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.claims.launch import Launch
from harness.claims.metrics import METRICS, Metric
from harness.claims.pool import Pool
from harness.claims.schema import BaseOut
from harness.claims.verdict import Estimate
from harness.record.schema import Evidence
from harness.spec.case import TrainCase
from harness.spec.errors import SpecError
from harness.stats.bootstrap import ratio, ratio_interval
from harness.stats.intervals import Interval, median, median_interval

SAME_TRAINING = ("workload", "image_side", "width", "minibatch", "steps", "warmup", "data", "learning_rate", "momentum", "framework")
"""Fields that two trainings must share to be compared step by step."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the launches: a metric over cases, at a message size or against other cases where the metric wants that."""

    metric: Metric
    select: Mapping[str, Any]
    against: Mapping[str, Any] | None = None
    nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The answer, the launches behind it, and the base in absolute terms."""

    estimate: Estimate
    runs: tuple[str, ...]
    base: BaseOut | None = None


def answer(question: Question, pool: Pool, evidence: Evidence) -> Found | None:
    """The estimate at one level of evidence; None when no launch has the metric."""
    launches = pool.launches(question.select, evidence)
    if question.against is None:
        return _alone(launches, _per_launch(question))
    base = pool.launches(question.against, evidence)
    if question.metric.pair is not None:
        return _pairs(question, launches, base)
    return _ratio(question, launches, base)


def _per_launch(question: Question) -> Callable[[Launch], float | None]:
    metric = METRICS[question.metric.ratio_of] if question.metric.ratio_of else question.metric
    per_launch, per_size, nbytes = metric.launch, metric.size, question.nbytes
    if per_launch is not None:
        return lambda launch: per_launch(launch.record, launch.samples)
    if per_size is not None and nbytes is not None:
        return lambda launch: per_size(launch.record, launch.samples, nbytes)
    raise SpecError(f"metric {metric.name!r} has no value for a single launch; give 'against' or 'nbytes'")


def _values(launches: Sequence[Launch], value_of: Callable[[Launch], float | None]) -> list[tuple[Launch, float]]:
    return [(launch, value) for launch in launches if (value := value_of(launch)) is not None]


def _alone(launches: Sequence[Launch], value_of: Callable[[Launch], float | None]) -> Found | None:
    found = _values(launches, value_of)
    return _median([value for _, value in found], [launch for launch, _ in found]) if found else None


def _median(values: list[float], launches: Sequence[Launch], base: BaseOut | None = None) -> Found:
    estimate = Estimate(median(values), median_interval(values), len(values), tuple(values))
    return Found(estimate, tuple(launch.record.launch for launch in launches), base)


def _ratio(question: Question, launches: Sequence[Launch], base: Sequence[Launch]) -> Found | None:
    value_of = _per_launch(question)
    above, below = _values(launches, value_of), _values(base, value_of)
    if not above or not below or median([value for _, value in below]) == 0:
        return None
    paired = len(_cases(above)) == len(_cases(below)) == 1
    if paired:
        above, below = _same_blocks(above, below)
        if not above:
            return None
    numerator, denominator = [value for _, value in above], [value for _, value in below]
    scale = _ranks(above) / _ranks(below) if question.metric.scaled_by_ranks else 1.0
    interval = ratio_interval(numerator, denominator, paired)
    if interval is not None:
        interval = Interval(interval.low / scale, interval.high / scale, interval.coverage, interval.method)
    unit = METRICS[question.metric.ratio_of].unit if question.metric.ratio_of else question.metric.unit
    named = BaseOut(select=dict(question.against or {}), value=median(denominator), unit=unit, n=len(denominator))
    estimate = Estimate(ratio(numerator, denominator) / scale, interval, min(len(numerator), len(denominator)))
    return Found(estimate, tuple(launch.record.launch for launch, _ in [*above, *below]), named)


def _same_blocks(above: list[tuple[Launch, float]], below: list[tuple[Launch, float]]) -> tuple[list[tuple[Launch, float]], list[tuple[Launch, float]]]:
    """Launches of the blocks in which both sides finished."""
    first, second = ({launch.record.plan_index: (launch, value) for launch, value in side} for side in (above, below))
    blocks = sorted(first.keys() & second.keys())
    return [first[block] for block in blocks], [second[block] for block in blocks]


def _pairs(question: Question, launches: Sequence[Launch], base: Sequence[Launch]) -> Found | None:
    """Every launch against the base launch of the same seed and the same training."""
    compare = question.metric.pair
    assert compare is not None
    bases = {_training(launch): launch for launch in base}
    values, used = [], []
    for launch in launches:
        other = bases.get(_training(launch))
        value = compare(launch, other) if other is not None else None
        if value is not None and other is not None:
            values.append(value)
            used += [launch, other]
    if not values:
        return None
    named = BaseOut(select=dict(question.against or {}), value=None, unit=question.metric.unit, n=len({launch.record.launch for launch in used[1::2]}))
    return _median(values, list({launch.record.launch: launch for launch in used}.values()), named)


def _training(launch: Launch) -> tuple[Any, ...]:
    case = launch.record.case
    fields = SAME_TRAINING if isinstance(case, TrainCase) else ()
    return launch.record.seed, launch.record.plan_index, *(getattr(case, name) for name in fields)


def _cases(found: list[tuple[Launch, float]]) -> set[str]:
    return {launch.record.case_id for launch, _ in found}


def _ranks(found: list[tuple[Launch, float]]) -> int:
    ranks = {launch.record.case.ranks for launch, _ in found}
    if len(ranks) != 1:
        raise SpecError(f"an efficiency needs one number of ranks a side; these launches have {sorted(ranks)}")
    return ranks.pop()
