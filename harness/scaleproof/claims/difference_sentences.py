"""Sentences about comparisons of two arms and about intervals; no code reads these sentences."""

from __future__ import annotations

from scaleproof.stats.arm_difference import Difference, DifferenceReason, DifferenceTest
from scaleproof.stats.compare_arms import WORTH_FINDING
from scaleproof.stats.intervals import Interval, Method, smallest_count

NO_FLOOR = "no noise floor known"


def difference_sentence(difference: Difference) -> str:
    """The result of a comparison: the change, its interval, the p-value, the reason, the number of launches."""
    if difference.test in (DifferenceTest.DRAWS, DifferenceTest.WORST_ENDS):
        return _predicted(difference)
    if difference.reason is DifferenceReason.NO_LAUNCHES:
        return f"{difference.n[0]} and {difference.n[1]} launches: nothing to compare"
    if difference.reason is DifferenceReason.NOT_POSITIVE:
        return "values of 0 or below have no ratio"
    if difference.reason is DifferenceReason.ALL_VALUES_EQUAL:
        return f"every launch of both gave {difference.value:.6g}"
    if difference.shift is None or difference.interval is None or difference.p_value is None:
        needed = smallest_count(difference.confidence)
        few = f"{min(difference.n)} launches a side give no {difference.confidence:.0%} interval, {needed} do"
        return f"{_change(difference.ratio or 1.0)}, but {few}"
    interval = f"[{_signed(difference.interval.low)}, {_signed(difference.interval.high)}]"
    launches = f"{difference.n[0]} and {difference.n[1]} launches"
    reason = _reason(difference, difference.interval)
    return f"{_change(difference.shift)} {interval}, p = {difference.p_value:.2g}: {reason}; {launches}"


def method_sentence(interval: Interval) -> str:
    """How an interval was made."""
    around = f", around {interval.campaigns} campaigns" if interval.campaigns > 1 else ""
    return _method_words(interval) + around


def _method_words(interval: Interval) -> str:
    if interval.method is Method.ORDER_STATISTICS_OF_CASES:
        return f"over cases: order statistics of {interval.counts[0]}"
    if interval.method is Method.HODGES_LEHMANN_PAIRED:
        test = test_description(DifferenceTest.SIGNED_RANK, interval.counts)
        return f"Hodges-Lehmann interval of the {test}, on logarithms"
    if interval.method is Method.HODGES_LEHMANN:
        test = test_description(DifferenceTest.RANK_SUM, interval.counts)
        return f"Hodges-Lehmann interval of the {test}, on logarithms"
    if interval.method is Method.PREDICTION:
        return f"prediction interval of {interval.counts[0]} draws"
    if interval.method is Method.PREDICTION_CUT:
        return f"prediction interval of {interval.counts[0]} draws, cut at what computing alone allows"
    if interval.method is Method.WORST_ENDS:
        above, below = map(method_sentence, interval.parts)
        return f"worst ends of {above} over {below}"
    if interval.method is Method.AROUND_POINTS:
        return f"around the intervals of {interval.counts[0]} points, each a {method_sentence(interval.parts[0])}"
    return str(interval.method)


def test_description(test: DifferenceTest, counts: tuple[int, ...]) -> str:
    """The test behind a comparison."""
    if test is DifferenceTest.SIGNED_RANK:
        return f"exact Wilcoxon signed-rank test over {counts[0]} blocks"
    if test is DifferenceTest.RANK_SUM:
        return f"exact Wilcoxon rank-sum test over {counts[0]} and {counts[1]} launches"
    if test is DifferenceTest.DRAWS:
        return "spread of draws from the inputs' uncertainty"
    return "worst ends of a prediction's and launches' intervals"


def _predicted(difference: Difference) -> str:
    if difference.ratio is None:
        two = "the two predictions" if difference.test is DifferenceTest.DRAWS else "values of 0 and below"
        return f"no ratio of {two}"
    change = f"{difference.ratio - 1:+.1%}"
    if difference.interval is None:
        return f"{change}, but {min(difference.n)} repetitions a side give no interval, {smallest_count()} do"
    low, high = difference.interval.low - 1, difference.interval.high - 1
    return f"{change} [{low:+.1%}, {high:+.1%}], {method_sentence(difference.interval)}"


def _reason(difference: Difference, interval: Interval) -> str:
    floor = NO_FLOOR if difference.floor is None else f"the noise floor of {_percent(difference.floor)}"
    if difference.reason is DifferenceReason.WITHIN_MARGIN:
        return f"the whole interval lies within the margin of {_percent(difference.margin or 0.0)}"
    if difference.reason is DifferenceReason.SIGNIFICANT:
        return f"significant; {floor}" if difference.floor is None else f"significant and beyond {floor}"
    if difference.reason is DifferenceReason.SIGNIFICANT_WITHIN_FLOOR:
        return f"significant, but not beyond {floor}"
    if difference.reason is DifferenceReason.CAMPAIGNS_DISAGREE:
        alone = ", ".join(_signed(shift) for shift in difference.campaigns)
        return f"the campaigns disagree: alone they give {alone}"
    if difference.reason is DifferenceReason.PAIRS_EQUAL:
        return "every launch of one equals one of the other"
    if difference.reason is DifferenceReason.EQUIVALENT:
        band = floor if (difference.floor or 0.0) <= WORTH_FINDING else _percent(WORTH_FINDING)
        return f"not significant, and the whole interval lies within {band}"
    if difference.reason is DifferenceReason.FLOOR_TOO_WIDE:
        return f"not significant, but {floor} hides a difference of {_percent(WORTH_FINDING)}"
    largest = _percent(max(interval.high - 1, 1 / interval.low - 1))
    smallest = _percent(difference.detectable or 0.0)
    sentence = (
        f"not significant, but a difference of {largest} is not ruled out; these launches find one from {smallest} on"
    )
    return f"{sentence}; {floor}" if difference.floor is None else sentence


def _change(ratio: float) -> str:
    if ratio == 1:
        return "equal"
    return f"{_percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.3g} %"
