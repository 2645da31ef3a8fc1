"""The values of one metric in the launches of an arm, and what two arms give: their difference, their pairs of blocks,
and predictions apart from launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_choice import in_blocks
from scaleproof.core.campaign import Campaign
from scaleproof.core.record_schema import Record
from scaleproof.spec.errors import SpecError
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.arm_difference import Difference
from scaleproof.stats.campaigns import Alone, around_campaigns, shift_alone, with_campaigns
from scaleproof.stats.compare_arms import compare
from scaleproof.stats.intervals import median, median_interval

Values = list[tuple[Launch, float]]
"""Launches with the metric's value in each."""


def finite_values(launches: Sequence[Launch], value_of: Callable[[Launch], float | None]) -> Values:
    """Launches that give the metric."""
    return [(launch, value) for launch in launches if (value := value_of(launch)) is not None and math.isfinite(value)]


def numbers(values: Values) -> list[float]:
    """Without their launches."""
    return [value for _, value in values]


def of_records(values: Values) -> list[tuple[Record, float]]:
    """Values beside the records of their launches."""
    return [(launch.record, value) for launch, value in values]


def launch_ids(values: Values) -> tuple[str, ...]:
    """Of the launches behind values."""
    return tuple(launch.record.launch for launch, _ in values)


def is_simulated(values: Values) -> bool:
    """Whether all of them are simulated."""
    return all(launch.record.evidence == "simulated" for launch, _ in values)


def is_predicted(values: Values) -> bool:
    """Whether all of them are predictions, which differ by draws from their inputs alone. A launch whose trajectory is
    computed, or whose data are drawn, has a seed of its own, as launches in processes have: it is one of a sample. So
    is one whose delays are drawn from the case's laws."""
    return is_simulated(values) and not any(_is_sampled(launch.record) for launch, _ in values)


def _is_sampled(record: Record) -> bool:
    return record.sampled or any(record.case.value(law) is not None for law in ("step_delay", "message_delay"))


def repetitions(values: Values) -> dict[int, float]:
    """One value per repetition, the median where several cases are taken together."""
    return predictions.by_repetition([(launch.record.plan_index, value) for launch, value in values])


def known_value(values: Values) -> predictions.Known:
    """A prediction with the spread of its draws, or the median of launches with its interval: draws are no launches."""
    if is_predicted(values):
        drawn = repetitions(values)
        return predictions.central(drawn), predictions.spread(drawn)
    return median(numbers(values)), around_campaigns(median_interval(numbers(values)), medians_alone(values))


def arm_difference(first: Values, second: Values, floor: float | None) -> Difference:
    """Whether two arms differ; predictions and launches each by their own kind of uncertainty."""
    if is_predicted([*first, *second]):
        return predictions.difference(repetitions(first), repetitions(second))
    if is_simulated(first) != is_simulated(second):
        return predictions.across(known_value(first), known_value(second), (len(first), len(second)), floor)
    first, second, paired = paired_by_block(first, second)
    difference = compare(numbers(first), numbers(second), paired=paired, floor=floor)
    if difference.shift is None:
        return difference
    sides = of_campaigns(first, second, paired)
    return with_campaigns(difference, [shift_alone(one, other, paired) for one, other in sides])


def by_campaign(values: Values) -> dict[Campaign, list[float]]:
    """The numbers of each campaign, in their order."""
    campaigns: dict[Campaign, list[float]] = {}
    for launch, value in values:
        campaigns.setdefault(launch.record.of_campaign, []).append(value)
    return campaigns


def medians_alone(values: Values) -> list[Alone]:
    """The median of each campaign alone."""
    return [Alone(median(of_one), len(of_one)) for of_one in by_campaign(values).values()]


def of_campaigns(first: Values, second: Values, paired: bool) -> list[tuple[list[float], list[float]]]:
    """Both sides in each campaign that both have. Pairs of which one launch was made again by a later call of `run`
    stand alone."""
    if paired:
        campaigns: dict[tuple[Campaign, Campaign], tuple[list[float], list[float]]] = {}
        for (launch, value), (partner, partners_value) in zip(first, second, strict=True):
            sides = campaigns.setdefault((launch.record.of_campaign, partner.record.of_campaign), ([], []))
            sides[0].append(value)
            sides[1].append(partners_value)
        return list(campaigns.values())
    one, other = by_campaign(first), by_campaign(second)
    return [(one[campaign], other[campaign]) for campaign in sorted(one.keys() & other.keys())]


def paired_by_block(above: Values, below: Values) -> tuple[Values, Values, bool]:
    """Paired by block, and only the blocks in which both sides finished, where each side is one case."""
    if not len(_cases(above)) == len(_cases(below)) == 1:
        return above, below, False
    pairs = in_blocks(above, below, lambda measured: measured[0].record.block)
    return [first for first, _ in pairs], [second for _, second in pairs], True


def rank_count(values: Values) -> int:
    """Ranks of these launches; SpecError where they are not equally many."""
    ranks = {launch.record.case.ranks for launch, _ in values}
    if len(ranks) != 1:
        raise SpecError(f"an efficiency needs one number of ranks a side; these launches have {sorted(ranks)}")
    return ranks.pop()


def _cases(values: Values) -> set[str]:
    return {launch.record.case_id for launch, _ in values}
