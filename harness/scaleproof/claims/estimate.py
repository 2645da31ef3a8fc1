"""From launches to one number with its interval: medians over launches, ratios of medians by bootstrap, differences
between paired launches, steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scaleproof.claims import level_difference as levels
from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import Metric, PerBlock
from scaleproof.claims.noise_floor import base_metric, fits
from scaleproof.claims.verdict_rules import Estimate, Step
from scaleproof.core.record_schema import Evidence
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.stats import predictions
from scaleproof.stats.bootstrap import ratio, ratio_interval
from scaleproof.stats.compare import Difference, compare
from scaleproof.stats.intervals import Interval, median, median_interval
from scaleproof.stats.summary import trend

SAME_TRAINING = (
    "workload",
    "image_side",
    "width",
    "minibatch",
    "steps",
    "warmup",
    "data",
    "learning_rate",
    "momentum",
    "framework",
)
"""Fields that two trainings must share to be compared step by step."""


Values = list[tuple[Launch, float]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the launches: a metric over cases, at a message size or against other cases where the metric
    wants that.

    `arms`: cases compared each with the next; `along`: the field that tells them apart. `floor`: the machine's noise
    floor, a share. `crowded`: whether oversubscribed launches count.
    """

    metric: Metric
    select: Mapping[str, Any]
    against: Mapping[str, Any] | None = None
    nbytes: int | None = None
    arms: Sequence[Mapping[str, Any]] = ()
    along: str | None = None
    floor: float | None = None
    crowded: bool = True
    base_evidence: Evidence | None = None
    """Level at which `against` is taken; None: that of `select`."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer, the launches behind it, the base in absolute terms, and the values of each side by its name."""

    estimate: Estimate
    runs: tuple[str, ...]
    base: BaseOut | None = None
    sides: tuple[tuple[str, Values], ...] = ()
    notes: tuple[str, ...] = ()


def answer(question: Question, pool: Pool, evidence: Evidence) -> Found | None:
    """The estimate at one level of evidence; None when no launch has the metric."""
    if question.arms or question.along is not None:
        return _steps(question, pool, evidence)
    launches = _usable(question, pool, question.select, evidence)
    if question.metric.block is not None:
        return _blocks(question.metric.block, launches)
    if question.against is None:
        return _alone(question, launches)
    base = _usable(question, pool, question.against, question.base_evidence or evidence)
    if question.metric.apart is not None:
        return _apart(question, question.metric.apart, launches, base)
    if question.metric.pair is not None:
        return _pairs(question, launches, base)
    return _ratio(question, launches, base)


def _usable(question: Question, pool: Pool, select: Mapping[str, Any], evidence: Evidence) -> list[Launch]:
    return [launch for launch in pool.launches(select, evidence) if question.crowded or fits(launch.record)]


def _per_launch(question: Question) -> Callable[[Launch], float | None]:
    metric = base_metric(question.metric)
    per_launch, per_size, nbytes = metric.launch, metric.size, question.nbytes
    if per_launch is not None:
        return lambda launch: launch.value(metric.name, None, lambda: per_launch(launch.record, launch.samples))
    if per_size is not None and nbytes is not None:
        return lambda launch: launch.value(metric.name, nbytes, lambda: per_size(launch.record, launch.samples, nbytes))
    raise SpecError(f"metric {metric.name!r} has no value for a single launch; give 'against' or 'nbytes'")


def _values(launches: Sequence[Launch], value_of: Callable[[Launch], float | None]) -> Values:
    return [(launch, value) for launch in launches if (value := value_of(launch)) is not None and math.isfinite(value)]


def _alone(question: Question, launches: Sequence[Launch]) -> Found | None:
    values = _values(launches, _per_launch(question))
    if not values:
        return None
    found = _foretold(values) if _is_foretold(values) else _median(_numbers(values), [launch for launch, _ in values])
    return replace(
        found,
        estimate=replace(found.estimate, floor=question.floor, timing=question.metric.timing),
        sides=(("", values),),
    )


def _median(values: list[float], launches: Sequence[Launch], base: BaseOut | None = None) -> Found:
    estimate = Estimate(median(values), median_interval(values), len(values), tuple(values))
    return Found(estimate, tuple(launch.record.launch for launch in launches), base)


def _is_foretold(values: Values) -> bool:
    return all(launch.record.evidence == "simulated" for launch, _ in values)


def _repetitions(values: Values) -> dict[int, float]:
    return predictions.by_repetition([(launch.record.plan_index, value) for launch, value in values])


def _foretold(values: Values) -> Found:
    """Of predictions: repetition 0 with the spread of the others, which are draws from the uncertainty of its inputs."""
    found = _repetitions(values)
    estimate = Estimate(predictions.central(found), predictions.spread(found), len(found), tuple(_numbers(values)))
    return Found(estimate, tuple(launch.record.launch for launch, _ in values))


def _blocks(value_of: PerBlock, launches: Sequence[Launch]) -> Found | None:
    """One value per repetition, of all its launches together."""
    blocks: dict[int, list[Launch]] = {}
    for launch in launches:
        blocks.setdefault(launch.record.plan_index, []).append(launch)
    values = {index: value for index, block in sorted(blocks.items()) if (value := value_of(block)) is not None}
    if values and _is_foretold([(blocks[index][0], value) for index, value in values.items()]):
        found = _foretold([(blocks[index][0], value) for index, value in values.items()])
        return replace(found, runs=tuple(launch.record.launch for index in values for launch in blocks[index]))
    return _median(list(values.values()), [launch for index in values for launch in blocks[index]]) if values else None


def _ratio(question: Question, launches: Sequence[Launch], base: Sequence[Launch]) -> Found | None:
    value_of = _per_launch(question)
    above, below = _values(launches, value_of), _values(base, value_of)
    if not above or not below or median([value for _, value in below]) == 0:
        return None
    mixed = _is_foretold(above) != _is_foretold(below)
    above, below, paired = (above, below, False) if mixed else _matched(above, below)
    if not above:
        return None
    numerator, denominator = _numbers(above), _numbers(below)
    scale = _ranks(above) / _ranks(below) if question.metric.scaled_by_ranks else 1.0
    if mixed:
        ours, interval = predictions.quotient(_known(above), _known(below))
    elif _is_foretold(above) and (foretold := predictions.ratios(_repetitions(above), _repetitions(below))):
        ours, interval = predictions.central(foretold), predictions.spread(foretold)
    else:
        ours, interval = ratio(numerator, denominator), ratio_interval(numerator, denominator, paired)
    if interval is not None:
        interval = Interval(interval.low / scale, interval.high / scale, interval.coverage, interval.method)
    named = BaseOut(
        select=dict(question.against or {}),
        value=_known(below)[0],
        unit=base_metric(question.metric).unit,
        n=len(denominator),
    )
    difference = _difference([(launch, value / scale) for launch, value in above], below, question.floor)
    count = min(len(numerator), len(denominator))
    estimate = Estimate(
        ours / scale, interval, count, difference=difference, floor=question.floor, timing=question.metric.timing
    )
    return Found(
        estimate,
        tuple(launch.record.launch for launch, _ in [*above, *below]),
        named,
        ((" above the line", above), (" below the line", below)),
    )


def _apart(
    question: Question, pick: Callable[[Sequence[float]], float], launches: Sequence[Launch], base: Sequence[Launch]
) -> Found | None:
    """How far two levels of evidence are apart, over the cases that both have."""
    value_of = _per_launch(question)
    above, below = _values(launches, value_of), _values(base, value_of)
    found = levels.apart(above, below)
    if not found:
        return None
    ours, interval = levels.summary(found, pick)
    estimate = Estimate(ours, interval, len(found), tuple(abs(one.share) for one in found), timing=True)
    return Found(
        estimate, tuple(launch.record.launch for launch, _ in [*above, *below]), notes=(levels.largest(found),)
    )


def _steps(question: Question, pool: Pool, evidence: Evidence) -> Found | None:
    """Each arm against the one before: how far the claimed order, or the claimed trend along x, is found. `ours` is the
    last arm over the first."""
    value_of = _per_launch(question)
    arms = [
        (label, values)
        for label, launches in _arms(question, pool, evidence)
        if (values := _values(launches, value_of))
    ]
    if len(arms) < 2 or len(arms) < len(question.arms):
        return None
    pairs = [(arms[index], arms[index + 1]) for index in range(len(arms) - 1)]
    steps = tuple(
        Step(f"{before} to {after}", _difference(later, earlier, question.floor))
        for (before, earlier), (after, later) in pairs
    )
    whole = _difference(arms[-1][1], arms[0][1], question.floor)
    if whole.ratio is None:
        return None
    places = [(position, value) for position, (_, values) in enumerate(arms) for _, value in values]
    estimate = Estimate(
        whole.ratio,
        whole.interval,
        min(len(values) for _, values in arms),
        difference=whole,
        floor=question.floor,
        timing=question.metric.timing,
        steps=steps,
        trend=trend([position for position, _ in places], [value for _, value in places]),
    )
    runs = tuple(launch.record.launch for _, values in arms for launch, _ in values)
    first = (
        dict(question.arms[0])
        if question.arms
        else {str(question.along): getattr(arms[0][1][0][0].record.case, str(question.along))}
    )
    named = BaseOut(
        select={**question.select, **first},
        value=median(_numbers(arms[0][1])),
        unit=base_metric(question.metric).unit,
        n=len(arms[0][1]),
    )
    return Found(estimate, runs, named, tuple((f" of {label}", values) for label, values in arms))


def _arms(question: Question, pool: Pool, evidence: Evidence) -> list[tuple[str, list[Launch]]]:
    if question.arms:
        chosen = [(_label(arm), {**question.select, **arm}) for arm in question.arms]
        return [(label, _usable(question, pool, select, evidence)) for label, select in chosen]
    along, grouped = str(question.along), dict[Any, list[Launch]]()
    for launch in _usable(question, pool, question.select, evidence):
        grouped.setdefault(getattr(launch.record.case, along), []).append(launch)
    return [(f"{along}={x}", grouped[x]) for x in sorted(grouped)]


def _label(arm: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in arm.items())


def _difference(first: Values, second: Values, floor: float | None) -> Difference:
    if _is_foretold([*first, *second]):
        return predictions.difference(_repetitions(first), _repetitions(second))
    if _is_foretold(first) != _is_foretold(second):
        return predictions.across(_known(first), _known(second), (len(first), len(second)), floor)
    first, second, paired = _matched(first, second)
    return compare(_numbers(first), _numbers(second), paired=paired, floor=floor)


def _known(values: Values) -> predictions.Known:
    """A prediction with the spread of its draws, or the median of launches with its interval: draws are no launches."""
    if _is_foretold(values):
        found = _repetitions(values)
        return predictions.central(found), predictions.spread(found)
    return median(_numbers(values)), median_interval(_numbers(values))


def _numbers(found: Values) -> list[float]:
    return [value for _, value in found]


def _matched(above: Values, below: Values) -> tuple[Values, Values, bool]:
    """Paired by block, and only the blocks in which both sides finished, where each side is one case."""
    if not len(_cases(above)) == len(_cases(below)) == 1:
        return above, below, False
    first, second = ({launch.record.plan_index: (launch, value) for launch, value in side} for side in (above, below))
    blocks = sorted(first.keys() & second.keys())
    return [first[block] for block in blocks], [second[block] for block in blocks], True


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
    named = BaseOut(
        select=dict(question.against or {}),
        value=None,
        unit=question.metric.unit,
        n=len({launch.record.launch for launch in used[1::2]}),
    )
    return _median(values, list({launch.record.launch: launch for launch in used}.values()), named)


def _training(launch: Launch) -> tuple[Any, ...]:
    case = launch.record.case
    fields = SAME_TRAINING if isinstance(case, TrainCase) else ()
    return launch.record.seed, launch.record.plan_index, *(getattr(case, name) for name in fields)


def _cases(found: Values) -> set[str]:
    return {launch.record.case_id for launch, _ in found}


def _ranks(found: Values) -> int:
    ranks = {launch.record.case.ranks for launch, _ in found}
    if len(ranks) != 1:
        raise SpecError(f"an efficiency needs one number of ranks a side; these launches have {sorted(ranks)}")
    return ranks.pop()
