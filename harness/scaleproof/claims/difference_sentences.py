"""Comparisons of two arms and intervals in words; nothing reads these words again."""

from __future__ import annotations

from scaleproof.stats.arm_difference import Difference, DifferenceReason, DifferenceTest
from scaleproof.stats.compare import WORTH_FINDING
from scaleproof.stats.intervals import Interval, Method, smallest_count

NO_FLOOR = "no noise floor known"


def difference_sentence(found: Difference) -> str:
    """What a comparison found and why: the change, its interval, the p-value, the reason, the number of launches."""
    if found.test in (DifferenceTest.DRAWS, DifferenceTest.WORST_ENDS):
        return _predicted(found)
    if found.reason is DifferenceReason.NO_LAUNCHES:
        return f"{found.n[0]} and {found.n[1]} launches: nothing to compare"
    if found.reason is DifferenceReason.NOT_POSITIVE:
        return "values of 0 or below have no ratio"
    if found.reason is DifferenceReason.ALL_VALUES_EQUAL:
        return f"every launch of both gave {found.value:.6g}"
    if found.shift is None or found.interval is None or found.p_value is None:
        needed = smallest_count(found.confidence)
        few = f"{min(found.n)} launches a side give no {found.confidence:.0%} interval, {needed} do"
        return f"{_change(found.ratio or 1.0)}, but {few}"
    interval = f"[{_signed(found.interval.low)}, {_signed(found.interval.high)}]"
    launches = f"{found.n[0]} and {found.n[1]} launches"
    reason = _reason(found, found.interval)
    return f"{_change(found.shift)} {interval}, p = {found.p_value:.2g}: {reason}; {launches}"


def method_sentence(interval: Interval) -> str:
    """How an interval was made."""
    if interval.method is Method.ORDER_STATISTICS_OF_CASES:
        return f"over cases: order statistics of {interval.counts[0]}"
    if interval.method is Method.HODGES_LEHMANN_PAIRED:
        test = words_of_test(DifferenceTest.SIGNED_RANK, interval.counts)
        return f"Hodges-Lehmann interval of the {test}, on logarithms"
    if interval.method is Method.HODGES_LEHMANN:
        return (
            f"Hodges-Lehmann interval of the {words_of_test(DifferenceTest.RANK_SUM, interval.counts)}, on logarithms"
        )
    if interval.method is Method.PREDICTION:
        return f"prediction interval of {interval.counts[0]} draws"
    if interval.method is Method.WORST_ENDS:
        above, below = map(method_sentence, interval.parts)
        return f"worst ends of {above} over {below}"
    if interval.method is Method.AROUND_POINTS:
        return f"around {interval.counts[0]} points of a range, each a {method_sentence(interval.parts[0])}"
    return str(interval.method)


def words_of_test(test: DifferenceTest, counts: tuple[int, ...]) -> str:
    """The test behind a comparison."""
    if test is DifferenceTest.SIGNED_RANK:
        return f"exact Wilcoxon signed-rank test over {counts[0]} blocks"
    if test is DifferenceTest.RANK_SUM:
        return f"exact Wilcoxon rank-sum test over {counts[0]} and {counts[1]} launches"
    if test is DifferenceTest.DRAWS:
        return "spread of draws from the inputs' uncertainty"
    return "worst ends of a prediction's and launches' intervals"


def _predicted(found: Difference) -> str:
    if found.ratio is None:
        two = "the two predictions" if found.test is DifferenceTest.DRAWS else "values of 0 and below"
        return f"no ratio of {two}"
    change = f"{found.ratio - 1:+.1%}"
    if found.interval is None:
        return f"{change}, but {min(found.n)} repetitions a side give no interval, {smallest_count()} do"
    low, high = found.interval.low - 1, found.interval.high - 1
    return f"{change} [{low:+.1%}, {high:+.1%}], {method_sentence(found.interval)}"


def _reason(found: Difference, interval: Interval) -> str:
    known = NO_FLOOR if found.floor is None else f"the noise floor of {_percent(found.floor)}"
    if found.reason is DifferenceReason.WITHIN_MARGIN:
        return f"the whole interval lies within the margin of {_percent(found.margin or 0.0)}"
    if found.reason is DifferenceReason.SIGNIFICANT:
        return f"significant; {known}" if found.floor is None else f"significant and beyond {known}"
    if found.reason is DifferenceReason.SIGNIFICANT_WITHIN_FLOOR:
        return f"significant, but not beyond {known}"
    if found.reason is DifferenceReason.PAIRS_EQUAL:
        return "every launch of one equals one of the other"
    if found.reason is DifferenceReason.EQUIVALENT:
        band = known if (found.floor or 0.0) <= WORTH_FINDING else _percent(WORTH_FINDING)
        return f"not significant, and the whole interval lies within {band}"
    if found.reason is DifferenceReason.FLOOR_TOO_WIDE:
        return f"not significant, but {known} hides a difference of {_percent(WORTH_FINDING)}"
    largest = _percent(max(interval.high - 1, 1 / interval.low - 1))
    smallest = _percent(found.detectable or 0.0)
    words = (
        f"not significant, but a difference of {largest} is not ruled out; these launches find one from {smallest} on"
    )
    return f"{words}; {known}" if found.floor is None else words


def _change(ratio: float) -> str:
    if ratio == 1:
        return "equal"
    return f"{_percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.3g} %"
