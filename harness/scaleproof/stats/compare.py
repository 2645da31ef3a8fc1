"""Whether two arms differ: an exact rank test over launches, beside the machine's noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from scaleproof.stats.intervals import CONFIDENCE, Interval, median, smallest_count
from scaleproof.stats.ranks import depth_of, differences, shift

Finding = Literal["higher", "lower", "no difference", "inconclusive"]
POWER = 0.95
WORTH_FINDING = 0.05
"""The difference that the default budget is made for: within a larger noise floor nothing is called equal that may
differ by this."""
NO_FLOOR = "no noise floor known"
_SEED = 20_160_222
_TRIALS = 4_000


@dataclass(frozen=True, slots=True)
class Difference:
    """What a comparison found: `ratio` of medians a / b, `shift` with its interval, p-value and test, launches a side,
    noise floor as a share, and why.

    `shift` is the factor between the arms that the test is about (Hodges-Lehmann); unlike the ratio of medians it is
    free of what paired blocks share. `ratio` is None where a side has no launches or values of 0 and below; `shift`,
    `interval` and `p_value` also where a side has too few launches.
    """

    ratio: float | None
    shift: float | None
    interval: Interval | None
    p_value: float | None
    test: str
    n: tuple[int, int]
    floor: float | None
    finding: Finding
    why: str


def compare(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    *,
    paired: bool,
    floor: float | None,
    confidence: float = CONFIDENCE,
    margin: float | None = None,
) -> Difference:
    """Compare two arms, one value per launch; `paired`: element k of both ran in one block.

    A difference is found when it is significant at `confidence` and its shift lies beyond 1 + `floor` or 1 / (1 +
    `floor`). `no difference` when it is not significant and the whole interval lies within that band and within 5 %,
    or, significant or not, within a stated margin of equivalence, 1 + `margin`. ValueError: a value is not finite,
    paired sides differ in length, or floor or margin is negative.
    """
    above, below = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if paired and len(above) != len(below):
        raise ValueError(f"paired sides differ: {len(above)} and {len(below)} launches")
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        raise ValueError("a value to compare is not finite")
    if min(floor or 0, margin or 0) < 0:
        raise ValueError("a noise floor or margin is a share of at least 0")
    counts = (len(above), len(below))
    test = test_name(*counts, paired)
    if not min(counts) or min(above.min(), below.min()) <= 0:
        return _without_ratio(above, below, test, floor)
    ratio = median(above) / median(below)
    if min(counts) < smallest_count(confidence):
        why = f"{_change(ratio)}, but {min(counts)} launches a side give no {confidence:.0%} interval, {smallest_count(confidence)} do"
        return Difference(ratio, None, None, None, test, counts, floor, "inconclusive", why)
    found = shift(np.log(above), np.log(below), paired, confidence)
    assert found.low is not None and found.high is not None
    centre = float(np.exp(found.centre))
    # Shown beside the ratio of medians: where that one lies outside, the interval is widened to hold it.
    low, high = min(float(np.exp(found.low)), ratio), max(float(np.exp(found.high)), ratio)
    interval = Interval(low, high, found.coverage, f"Hodges-Lehmann interval of the {test}, on logarithms")
    spread = _spread(above, below, paired)
    finding, reason = _decide(
        centre,
        interval,
        found.p_value <= 1 - confidence,
        floor,
        margin,
        detectable(spread, min(counts), paired, floor=floor or 0),
    )
    why = f"{_change(centre)} [{_signed(low)}, {_signed(high)}], p = {found.p_value:.2g}: {reason}; {counts[0]} and {counts[1]} launches"
    return Difference(ratio, centre, interval, found.p_value, test, counts, floor, finding, why)


def detectable(
    spread: float, n_per_arm: int, paired: bool, *, floor: float = 0.0, confidence: float = CONFIDENCE
) -> float:
    """The smallest slowdown, as a share, that 95 % of comparisons find; infinite when so few launches can find none.

    `spread`: standard deviation of the logarithm of one launch's value, of normal noise (within a block when paired).
    By simulation with a fixed seed.
    """
    if n_per_arm < smallest_count(confidence):
        return float("inf")
    short, centre = _null_comparisons(n_per_arm, paired, confidence)
    # Adding a shift moves both bounds by it: a comparison finds every shift beyond what its own bounds lack.
    needed = np.maximum(spread * short, np.log1p(floor) - spread * centre)
    return float(np.expm1(max(0.0, float(np.quantile(needed, POWER, method="higher")))))


def test_name(first: int, second: int, paired: bool) -> str:
    """The test in words."""
    return (
        f"exact Wilcoxon signed-rank test over {first} blocks"
        if paired
        else f"exact Wilcoxon rank-sum test over {first} and {second} launches"
    )


@lru_cache(maxsize=64)
def _null_comparisons(count: int, paired: bool, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Of comparisons of equal arms with noise of 1: by how much each falls short of being significant, and its shift."""
    generator = np.random.default_rng(_SEED)
    trials = max(400, min(_TRIALS, 4_000_000 // count**2))
    draws = generator.normal(size=(trials, 2, count))
    depth = depth_of(count, count, paired, confidence)
    steps = np.array([differences(first, second, paired) for first, second in draws])
    return -steps[:, depth - 1], np.median(steps, axis=1)


def _without_ratio(above: np.ndarray, below: np.ndarray, test: str, floor: float | None) -> Difference:
    counts = (len(above), len(below))
    if min(counts) and np.ptp(np.concatenate((above, below))) == 0:
        return Difference(
            None, None, None, None, test, counts, floor, "no difference", f"every launch of both gave {above[0]:.6g}"
        )
    why = (
        "values of 0 or below have no ratio"
        if min(counts)
        else f"{counts[0]} and {counts[1]} launches: nothing to compare"
    )
    return Difference(None, None, None, None, test, counts, floor, "inconclusive", why)


def _decide(
    centre: float, interval: Interval, significant: bool, floor: float | None, margin: float | None, seen: float
) -> tuple[Finding, str]:
    least = floor or 0.0
    known = NO_FLOOR if floor is None else f"the noise floor of {_percent(floor)}"
    if margin and _within(interval, margin):
        return "no difference", f"the whole interval lies within the margin of {_percent(margin)}"
    if significant and (centre > 1 + least or centre < 1 / (1 + least)):
        return (
            "higher" if centre > 1 else "lower"
        ), f"significant; {known}" if floor is None else f"significant and beyond {known}"
    if significant:
        return "inconclusive", f"significant, but not beyond {known}"
    if interval.low == interval.high == 1:
        return "no difference", "every launch of one equals one of the other"
    if floor and _within(interval, min(floor, WORTH_FINDING)):
        return (
            "no difference",
            f"not significant, and the whole interval lies within {known if floor <= WORTH_FINDING else _percent(WORTH_FINDING)}",
        )
    if floor and _within(interval, floor):
        return "inconclusive", f"not significant, but {known} hides a difference of {_percent(WORTH_FINDING)}"
    largest = max(interval.high - 1, 1 / interval.low - 1)
    open_ = f"not significant, but a difference of {_percent(largest)} is not ruled out; these launches find one from {_percent(seen)} on"
    return "inconclusive", f"{open_}; {known}" if floor is None else open_


def _within(interval: Interval, share: float) -> bool:
    return interval.low >= 1 / (1 + share) and interval.high <= 1 + share


def _spread(above: np.ndarray, below: np.ndarray, paired: bool) -> float:
    """Standard deviation of the logarithm of one launch, pooled over both arms; of one launch within its block when
    paired."""
    if paired:
        return float(np.std(np.log(above / below), ddof=1) / np.sqrt(2))
    squares = np.sum((np.log(above) - np.log(above).mean()) ** 2) + np.sum((np.log(below) - np.log(below).mean()) ** 2)
    return float(np.sqrt(squares / (len(above) + len(below) - 2)))


def _change(ratio: float) -> str:
    return "equal" if ratio == 1 else f"{_percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.3g} %"
