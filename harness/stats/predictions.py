"""Intervals of predictions: a deterministic model repeats itself, so its uncertainty is that of what it was fed, shown by draws from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from harness.stats.compare import Difference, Finding
from harness.stats.intervals import CONFIDENCE, Interval, median, smallest_count

CENTRAL = 0
"""Repetition whose inputs are all at their values; each other one is a draw."""
METHODS = "prediction interval", "no uncertainty in the inputs"
TEST = "spread of draws from the inputs' uncertainty"


def central(values: Mapping[int, float]) -> float:
    """The prediction: repetition 0, or the median of draws where it is missing."""
    return values[CENTRAL] if CENTRAL in values else median(list(values.values()))


def spread(values: Mapping[int, float], confidence: float = CONFIDENCE) -> Interval | None:
    """Where one more draw lies with `confidence`: Student's prediction interval of the draws, on logarithms where all are positive; it always holds the
    prediction itself. More draws make it surer, never narrower than the inputs are. None with fewer repetitions than a median's interval needs."""
    if len(values) < smallest_count(confidence):
        return None
    draws = np.array([value for index, value in values.items() if index != CENTRAL])
    if np.ptp(draws) == 0 and draws[0] == central(values):
        return Interval(float(draws[0]), float(draws[0]), confidence, METHODS[1])
    logarithms = bool(draws.min() > 0)
    found = np.log(draws) if logarithms else draws
    reach = float(stats.t.ppf((1 + confidence) / 2, len(found) - 1) * found.std(ddof=1) * np.sqrt(1 + 1 / len(found)))
    low, high = float(found.mean()) - reach, float(found.mean()) + reach
    if logarithms:
        low, high = float(np.exp(low)), float(np.exp(high))
    return Interval(min(low, central(values)), max(high, central(values)), confidence, f"{METHODS[0]} of {len(draws)} draws")


def ratios(above: Mapping[int, float], below: Mapping[int, float]) -> dict[int, float]:
    """Of each repetition that both sides have: draws of one repetition are of the same inputs."""
    return {index: above[index] / below[index] for index in above if below.get(index)}


def difference(above: Mapping[int, float], below: Mapping[int, float]) -> Difference:
    """Whether two predictions differ: when the interval of their ratio leaves 1 out. There is no sampling, hence no p-value."""
    found, counts = ratios(above, below), (len(above), len(below))
    if not found or central(found) <= 0:
        return Difference(None, None, None, None, TEST, counts, None, "inconclusive", "no ratio of the two predictions")
    ratio, interval = central(found), spread(found)
    if interval is None:
        why = f"{ratio - 1:+.1%}, but {len(found)} repetitions a side give no interval, {smallest_count()} do"
        return Difference(ratio, ratio, None, None, TEST, counts, None, "inconclusive", why)
    finding: Finding = "inconclusive"
    if interval.low > 1 or interval.high < 1:
        finding = "higher" if interval.low > 1 else "lower"
    elif interval.low == interval.high == 1:
        finding = "no difference"
    why = f"{ratio - 1:+.1%} [{interval.low - 1:+.1%}, {interval.high - 1:+.1%}], {interval.method}"
    return Difference(ratio, ratio, interval, None, TEST, counts, None, finding, why)


def by_repetition(found: Sequence[tuple[int, float]]) -> dict[int, float]:
    """One value per repetition, the median where several cases are taken together."""
    values: dict[int, list[float]] = {}
    for index, value in found:
        values.setdefault(index, []).append(value)
    return {index: median(some) for index, some in sorted(values.items())}
