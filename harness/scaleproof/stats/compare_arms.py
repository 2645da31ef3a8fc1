"""Whether two arms differ: an exact rank test over launches, together with the machine's noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from scaleproof.stats.arm_difference import Difference, DifferenceReason, DifferenceTest, Finding
from scaleproof.stats.intervals import CONFIDENCE, Interval, Method, median, smallest_count
from scaleproof.stats.rank_tests import depth_of, differences, shift

POWER = 0.95
WORTH_FINDING = 0.05
"""The difference that the default budget of launches can find. Arms that may differ by so much are never called equal,
also where the noise floor is larger."""
_MOST = 700.0
"""Of a logarithm: launches without a number are further apart than a float can say."""
_SEED = 20_160_222
_TRIALS = 4_000


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
    _check_values(above, below, paired, min(floor or 0, margin or 0))
    counts = (len(above), len(below))
    test = DifferenceTest.SIGNED_RANK if paired else DifferenceTest.RANK_SUM
    if not min(counts) or min(above.min(), below.min()) <= 0:
        return _without_ratio(above, below, test, floor)
    ratio = median(above) / median(below)
    if min(counts) < smallest_count(confidence):
        reason = DifferenceReason.TOO_FEW
        return Difference(ratio, None, None, None, test, counts, floor, "inconclusive", reason, confidence)
    estimate = shift(np.log(above), np.log(below), paired, confidence)
    assert estimate.low is not None and estimate.high is not None
    centre = float(np.exp(estimate.centre))
    # The ratio of medians is shown beside the interval, which is widened where the ratio lies outside.
    low, high = min(float(np.exp(estimate.low)), ratio), max(float(np.exp(estimate.high)), ratio)
    method = Method.HODGES_LEHMANN_PAIRED if paired else Method.HODGES_LEHMANN
    interval = Interval(low, high, estimate.coverage, method, counts)
    smallest = detectable(_spread(above, below, paired), min(counts), paired, floor=floor or 0)
    finding, reason = decide(centre, interval, estimate.p_value <= 1 - confidence, floor, margin)
    return Difference(
        ratio, centre, interval, estimate.p_value, test, counts, floor, finding, reason, confidence, margin, smallest
    )


def _check_values(above: np.ndarray, below: np.ndarray, paired: bool, smallest_share: float) -> None:
    if paired and len(above) != len(below):
        raise ValueError(f"paired sides differ: {len(above)} and {len(below)} launches")
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        raise ValueError("a value to compare is not finite")
    if smallest_share < 0:
        raise ValueError("a noise floor or margin is a share of at least 0")


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
    # Adding a shift moves both bounds by it: a comparison finds every shift larger than the distance of its bound.
    needed = np.maximum(spread * short, np.log1p(floor) - spread * centre)
    found = max(0.0, float(np.quantile(needed, POWER, method="higher")))
    return float(np.expm1(min(found, _MOST)))


@lru_cache(maxsize=64)
def _null_comparisons(count: int, paired: bool, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Of comparisons of equal arms with noise of 1: how far each is from being significant, and its shift."""
    generator = np.random.default_rng(_SEED)
    trials = max(400, min(_TRIALS, 4_000_000 // count**2))
    draws = generator.normal(size=(trials, 2, count))
    depth = depth_of(count, count, paired, confidence)
    steps = np.array([differences(first, second, paired) for first, second in draws])
    return -steps[:, depth - 1], np.median(steps, axis=1)


def _without_ratio(above: np.ndarray, below: np.ndarray, test: DifferenceTest, floor: float | None) -> Difference:
    counts = (len(above), len(below))

    def difference(finding: Finding, reason: DifferenceReason, value: float | None = None) -> Difference:
        return Difference(None, None, None, None, test, counts, floor, finding, reason, value=value)

    if not min(counts):
        return difference("inconclusive", DifferenceReason.NO_LAUNCHES)
    if np.ptp(np.concatenate((above, below))) == 0:
        return difference("no difference", DifferenceReason.ALL_VALUES_EQUAL, float(above[0]))
    return difference("inconclusive", DifferenceReason.NOT_POSITIVE)


def decide(
    centre: float, interval: Interval, significant: bool, floor: float | None, margin: float | None
) -> tuple[Finding, DifferenceReason]:
    """What a shift with its interval says, and why."""
    least = floor or 0.0
    if margin and _within(interval, margin):
        return "no difference", DifferenceReason.WITHIN_MARGIN
    if significant and (centre > 1 + least or centre < 1 / (1 + least)):
        return "higher" if centre > 1 else "lower", DifferenceReason.SIGNIFICANT
    if significant:
        return "inconclusive", DifferenceReason.SIGNIFICANT_WITHIN_FLOOR
    if interval.low == interval.high == 1:
        return "no difference", DifferenceReason.PAIRS_EQUAL
    if floor and _within(interval, min(floor, WORTH_FINDING)):
        return "no difference", DifferenceReason.EQUIVALENT
    if floor and _within(interval, floor):
        return "inconclusive", DifferenceReason.FLOOR_TOO_WIDE
    return "inconclusive", DifferenceReason.NOT_RULED_OUT


def _within(interval: Interval, share: float) -> bool:
    return interval.low >= 1 / (1 + share) and interval.high <= 1 + share


def _spread(above: np.ndarray, below: np.ndarray, paired: bool) -> float:
    """Standard deviation of the logarithm of one launch, pooled over both arms; of one launch within its block when
    paired."""
    if paired:
        return float(np.std(np.log(above / below), ddof=1) / np.sqrt(2))
    squares = np.sum((np.log(above) - np.log(above).mean()) ** 2) + np.sum((np.log(below) - np.log(below).mean()) ** 2)
    return float(np.sqrt(squares / (len(above) + len(below) - 2)))
