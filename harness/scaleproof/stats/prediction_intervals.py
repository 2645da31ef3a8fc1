"""Intervals of predictions. A deterministic model repeats itself: its uncertainty is that of its inputs, which draws
from the inputs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from scaleproof.stats.arm_difference import Difference, DifferenceReason, DifferenceTest, Finding
from scaleproof.stats.intervals import CONFIDENCE, Interval, Method, median, smallest_count

CENTRAL = 0
"""The repetition with the inputs at their values; each other repetition is a draw."""
Known = tuple[float, Interval | None]
"""A value and its interval."""


def central(values: Mapping[int, float]) -> float:
    """The prediction: repetition 0, or the median of draws where it is missing."""
    return values[CENTRAL] if CENTRAL in values else median(list(values.values()))


def spread(values: Mapping[int, float], confidence: float = CONFIDENCE, most: float | None = None) -> Interval | None:
    """The interval that holds one more draw with `confidence`: Student's prediction interval of the draws, on
    logarithms where all are positive; it always holds the prediction itself. More draws make it more certain, but never
    narrower than the uncertainty of the inputs. None with fewer repetitions than a median's interval needs. `most`:
    what no draw can exceed; the interval ends there, which takes nothing from its confidence."""
    if len(values) < smallest_count(confidence):
        return None
    draws = np.array([value for index, value in values.items() if index != CENTRAL])
    if np.ptp(draws) == 0 and draws[0] == central(values):
        return Interval(float(draws[0]), float(draws[0]), confidence, Method.CERTAIN_INPUTS)
    logarithms = bool(draws.min() > 0)
    scaled = np.log(draws) if logarithms else draws
    scale = scaled.std(ddof=1) * np.sqrt(1 + 1 / len(scaled))
    low, high = (float(end) for end in stats.t.interval(confidence, len(scaled) - 1, scaled.mean(), scale))
    if logarithms:
        low, high = float(np.exp(low)), float(np.exp(high))
    method = Method.PREDICTION
    if most is not None and high > most:
        high, method = max(most, float(draws.max())), Method.PREDICTION_CUT
    low, high = min(low, central(values), high), max(high, central(values))
    return Interval(low, high, confidence, method, (len(draws),))


def ratios(above: Mapping[int, float], below: Mapping[int, float]) -> dict[int, float]:
    """The ratio of each repetition that both sides have: both draws of a repetition have the same inputs."""
    return {index: above[index] / below[index] for index in above if below.get(index)}


def difference(above: Mapping[int, float], below: Mapping[int, float]) -> Difference:
    """Whether two predictions differ: they do when the interval of their ratio does not contain 1. There is no
    sampling, hence no p-value."""
    quotients, counts = ratios(above, below), (len(above), len(below))
    if not quotients or central(quotients) <= 0:
        reason = DifferenceReason.NOT_POSITIVE
        return Difference(None, None, None, None, DifferenceTest.DRAWS, counts, None, "inconclusive", reason)
    return _decided(central(quotients), spread(quotients), counts, DifferenceTest.DRAWS, None)


def quotient(above: Known, below: Known) -> Known:
    """A prediction over a median of launches, or the reverse. Its interval has the worst ends of both, since draws and
    launches have different kinds of uncertainty."""
    (numerator, interval_above), (denominator, interval_below) = above, below
    ratio = numerator / denominator
    if interval_above is None or interval_below is None or interval_below.low <= 0:
        return ratio, None
    ends = interval_above.low / interval_below.high, interval_above.high / interval_below.low
    coverage = min(interval_above.coverage, interval_below.coverage)
    return ratio, Interval(*ends, coverage, Method.WORST_ENDS, parts=(interval_above, interval_below))


def across(above: Known, below: Known, counts: tuple[int, int], floor: float | None) -> Difference:
    """Whether a prediction and launches differ: they do when the interval of their quotient does not contain 1, and the
    quotient lies beyond the noise floor."""
    if min(above[0], below[0]) <= 0:
        reason = DifferenceReason.NOT_POSITIVE
        return Difference(None, None, None, None, DifferenceTest.WORST_ENDS, counts, floor, "inconclusive", reason)
    return _decided(*quotient(above, below), counts, DifferenceTest.WORST_ENDS, floor)


def _decided(
    ratio: float, interval: Interval | None, counts: tuple[int, int], test: DifferenceTest, floor: float | None
) -> Difference:
    if interval is None:
        return Difference(ratio, ratio, None, None, test, counts, floor, "inconclusive", DifferenceReason.TOO_FEW)
    finding: Finding = "inconclusive"
    if (interval.low > 1 or interval.high < 1) and max(ratio, 1 / ratio) > 1 + (floor or 0):
        finding = "higher" if interval.low > 1 else "lower"
    elif interval.low == interval.high == 1:
        finding = "no difference"
    return Difference(ratio, ratio, interval, None, test, counts, floor, finding, DifferenceReason.BY_INTERVAL)


def by_repetition(pairs: Sequence[tuple[int, float]]) -> dict[int, float]:
    """One value per repetition, the median where several cases are taken together."""
    values: dict[int, list[float]] = {}
    for index, value in pairs:
        values.setdefault(index, []).append(value)
    return {index: median(of_repetition) for index, of_repetition in sorted(values.items())}
