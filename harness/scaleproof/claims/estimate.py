"""From launches to one number with its interval: medians over launches, ratios of medians by bootstrap, differences
between paired launches, steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scaleproof.claims import level_difference
from scaleproof.claims.arm_values import (
    Values,
    arm_difference,
    finite_values,
    is_predicted,
    is_simulated,
    known_value,
    launch_ids,
    medians_alone,
    numbers,
    of_campaigns,
    of_records,
    paired_by_block,
    rank_count,
    repetitions,
)
from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.claims_file import BaseOut
from scaleproof.claims.compute_limit import limit_of, limit_of_ratio
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import PerBlock
from scaleproof.claims.noise_floor import base_metric
from scaleproof.claims.question import Measurement, Question, usable_launches
from scaleproof.claims.step_estimate import estimate_steps
from scaleproof.claims.verdict_rules import Estimate
from scaleproof.claims.without_number import number_or_worst
from scaleproof.core.record_schema import Evidence
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.bootstrap import ratio, ratio_interval
from scaleproof.stats.campaigns import Alone, around_campaigns
from scaleproof.stats.intervals import Interval, median, median_interval
from scaleproof.stats.never import is_never

SAME_TRAINING = (
    "workload",
    "workload.image_side",
    "workload.width",
    "minibatch",
    "steps",
    "warmup",
    "workload.data",
    "learning_rate",
    "momentum",
    "framework",
)
"""Fields that two trainings must share to be compared step by step."""


def answer(question: Question, pool: Pool, evidence: Evidence) -> Measurement | None:
    """The estimate at one level of evidence, with the noise floor that it needs; None when no launch has the metric."""
    measurement = _measurement(question, pool, evidence)
    if measurement is None:
        return None
    floor = question.floor
    estimate = replace(
        measurement.estimate, floor=floor.share, floor_unknown=floor.unknown, noise=question.metric.noise
    )
    return replace(measurement, estimate=estimate)


def _measurement(question: Question, pool: Pool, evidence: Evidence) -> Measurement | None:
    if question.arms or question.along is not None:
        return estimate_steps(question, pool, evidence, _per_launch(question))
    launches = usable_launches(question, pool, question.select, evidence)
    if question.metric.block is not None:
        return _blocks(question, question.metric.block, launches)
    if question.against is None:
        return _alone(question, launches)
    base = usable_launches(question, pool, question.against, question.base_evidence or evidence)
    if question.metric.apart is not None:
        return _apart(question, question.metric.apart, launches, base)
    if question.metric.pair is not None:
        return _pairs(question, launches, base)
    return _ratio(question, launches, base)


def _per_launch(question: Question) -> Callable[[Launch], float | None]:
    metric = base_metric(question.metric)
    per_launch, per_size, nbytes = metric.launch, metric.size, question.nbytes
    if per_launch is not None:
        return lambda launch: launch.value(metric.name, None, lambda: number_or_worst(metric, launch))
    if per_size is not None and nbytes is not None:
        return lambda launch: launch.value(metric.name, nbytes, lambda: per_size(launch.record, launch.samples, nbytes))
    raise SpecError(f"metric {metric.name!r} has no value for a single launch; give 'against' or 'nbytes'")


def _alone(question: Question, launches: Sequence[Launch]) -> Measurement | None:
    values = finite_values(launches, _per_launch(question))
    if not values:
        return None
    launches = [launch for launch, _ in values]
    if is_predicted(values):
        most = limit_of(base_metric(question.metric).name, (launch.record for launch in launches))
        measurement = _predicted(values, most)
    else:
        measurement = _median(values, launches)
    return replace(measurement, sides=((None, values),))


def _median(values: Values, launches: Sequence[Launch], base: BaseOut | None = None) -> Measurement:
    """Of one value per launch or block; the launch beside a value says in which campaign it was made."""
    each = numbers(values)
    interval = around_campaigns(median_interval(each), medians_alone(values))
    estimate = Estimate(median(each), interval, len(each), tuple(each))
    return Measurement(estimate, tuple(launch.record.launch for launch in launches), base)


def _predicted(values: Values, most: float | None = None) -> Measurement:
    """Repetition 0 with the spread of the others, which are draws from the uncertainty of its inputs. `most`: what none
    of them can exceed."""
    drawn = repetitions(values)
    interval = predictions.spread(drawn, most=most)
    estimate = Estimate(predictions.central(drawn), interval, len(drawn), tuple(numbers(values)))
    return Measurement(estimate, launch_ids(values))


def _blocks(question: Question, value_of: PerBlock, launches: Sequence[Launch]) -> Measurement | None:
    """One value per repetition, from all its launches together. What the noise floor leaves undecided is that of the
    repetition in which it is largest, in each direction."""
    blocks: dict[tuple[int, str], list[Launch]] = {}
    for launch in launches:
        blocks.setdefault(launch.record.block, []).append(launch)
    values = {
        index: FloorRange.of(value)
        for index, block in sorted(blocks.items())
        if (value := value_of(block, question.floor.share)) is not None
    }
    if not values:
        return None
    used = [launch for index in values for launch in blocks[index]]
    firsts = [(blocks[index][0], each.value) for index, each in values.items()]
    if is_predicted(firsts):
        return replace(_predicted(firsts), runs=tuple(launch.record.launch for launch in used))
    measurement = _median(firsts, used)
    above = max(each.high - each.value for each in values.values())
    below = max(each.value - each.low for each in values.values())
    return replace(measurement, estimate=replace(measurement.estimate, undecided=above, undecided_below=below))


def _ratio(question: Question, launches: Sequence[Launch], base: Sequence[Launch]) -> Measurement | None:
    value_of = _per_launch(question)
    above, below = finite_values(launches, value_of), finite_values(base, value_of)
    if not above or not below or median(numbers(below)) == 0:
        return None
    mixed = is_simulated(above) != is_simulated(below)
    above, below, paired = (above, below, False) if mixed else paired_by_block(above, below)
    if not above or all(is_never(median(numbers(side))) for side in (above, below)):
        return None
    scale = rank_count(above) / rank_count(below) if question.metric.scaled_by_ranks else 1.0
    most = limit_of_ratio(base_metric(question.metric).name, of_records(above), of_records(below))
    ours, interval = _quotient(above, below, mixed, paired, most)
    if interval is not None:
        interval = replace(interval, low=interval.low / scale, high=interval.high / scale)
    estimate = Estimate(
        ours / scale,
        interval,
        min(len(above), len(below)),
        difference=arm_difference([(launch, value / scale) for launch, value in above], below, question.floor.share),
    )
    named = BaseOut(
        select=dict(question.against or {}),
        value=known_value(below)[0],
        unit=base_metric(question.metric).unit,
        n=len(below),
    )
    return Measurement(estimate, launch_ids([*above, *below]), named, (("above", above), ("below", below)))


def _quotient(
    above: Values, below: Values, mixed: bool, paired: bool, most: float | None
) -> tuple[float, Interval | None]:
    """The ratio of two sides with its interval; `mixed`: one side is predicted and the other is not; `most`: what a
    predicted ratio cannot exceed."""
    if mixed:
        return predictions.quotient(known_value(above), known_value(below))
    if is_predicted(above) and (drawn := predictions.ratios(repetitions(above), repetitions(below))):
        return predictions.central(drawn), predictions.spread(drawn, most=most)
    numerator, denominator = numbers(above), numbers(below)
    interval = ratio_interval(numerator, denominator, paired)
    if interval is not None:
        sides = of_campaigns(above, below, paired)
        alone = [Alone(ratio(one, other), min(len(one), len(other))) for one, other in sides]
        interval = around_campaigns(interval, alone)
    return ratio(numerator, denominator), interval


def _apart(
    question: Question, pick: Callable[[Sequence[float]], float], launches: Sequence[Launch], base: Sequence[Launch]
) -> Measurement | None:
    """The difference between two levels of evidence, over the cases that both have."""
    value_of = _per_launch(question)
    above, below = finite_values(launches, value_of), finite_values(base, value_of)
    cases = level_difference.case_differences(above, below, question.metric.points)
    if not cases:
        return None
    ours, interval = level_difference.summary(cases, pick)
    estimate = Estimate(ours, interval, len(cases), tuple(abs(case.share) for case in cases))
    return Measurement(estimate, launch_ids([*above, *below]), notes=(level_difference.largest(cases),))


def _pairs(question: Question, launches: Sequence[Launch], base: Sequence[Launch]) -> Measurement | None:
    """Every launch against the base launch of the same seed and the same training."""
    difference = question.metric.pair
    assert difference is not None
    same = question.metric.same
    bases = {_training(launch, launch.record.campaign_ids.block, same): launch for launch in base}
    of_any = {_training(launch, "", same): launch for launch in base}  # repetitions are numbered through all campaigns
    values, used = Values(), list[Launch]()
    for launch in launches:
        campaign = launch.record.campaign_ids.block  # a prediction has none
        other = bases.get(_training(launch, campaign, same))
        other = other or (bases if campaign else of_any).get(_training(launch, "", same))
        value = difference(launch, other, question.floor.share) if other is not None else None
        if value is not None and other is not None:
            values.append((launch, value))
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


def _training(launch: Launch, campaign: str, same: Sequence[str] | None) -> tuple[Any, ...]:
    """What two launches share whose trainings are compared; a prediction as base has no campaign. `same`: fields of the
    case; None: those of one training."""
    case = launch.record.case
    fields = (SAME_TRAINING if same is None else same) if isinstance(case, TrainCase) else ()
    return launch.record.seed, launch.record.plan_index, campaign, *(case.value(name) for name in fields)
