"""Comparisons on generated launches: how often equal arms are called different, and how often an injected slowdown is
detected."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from scaleproof.stats.compare_arms import compare, detectable
from scaleproof.stats.intervals import median, median_interval
from scaleproof.stats.rank_tests import shift
from scaleproof.stats.stopping_rule import BUDGET, state

Noise = Callable[[np.random.Generator, int], np.ndarray]
COMPARISONS = 400


def normal(generator: np.random.Generator, count: int) -> np.ndarray:
    return np.exp(generator.normal(0, 0.02, (2, count)))


def heavy_tails(generator: np.random.Generator, count: int) -> np.ndarray:
    return np.exp(0.05 * generator.standard_t(2, (2, count)))


def one_sided(generator: np.random.Generator, count: int) -> np.ndarray:
    """Most launches are alike and some are much slower, as on a shared machine."""
    return 1 + 0.01 * generator.random((2, count)) + 0.3 * (generator.random((2, count)) < 0.2)


def drift(generator: np.random.Generator, count: int) -> np.ndarray:
    return normal(generator, count) * np.exp(generator.normal(0, 0.1, count))


def findings(
    noise: Noise, count: int, paired: bool, slowdown: float, floor: float | None, comparisons: int, seed: int = 7
) -> list[str]:
    generator = np.random.default_rng(seed)
    arms = (noise(generator, count) for _ in range(comparisons))
    return [compare(first * (1 + slowdown), second, paired=paired, floor=floor).finding for first, second in arms]


@pytest.mark.parametrize("count", [6, BUDGET])
@pytest.mark.parametrize(
    ("noise", "paired"),
    [(normal, False), (normal, True), (heavy_tails, False), (heavy_tails, True), (one_sided, False), (drift, True)],
)
def test_equal_arms_differ_in_at_most_5_percent_of_comparisons(noise: Noise, paired: bool, count: int) -> None:
    """Without a noise floor, so that the statistical test alone has to hold its level; a floor only makes it
    stricter."""
    alarms = sum(finding in ("higher", "lower") for finding in findings(noise, count, paired, 0, None, COMPARISONS))
    assert binomtest(alarms, COMPARISONS, 0.05, alternative="greater").pvalue > 0.01, alarms


@pytest.mark.parametrize(("noise", "paired"), [(normal, False), (normal, True), (drift, True)])
def test_an_injected_slowdown_of_5_percent_is_found_with_the_default_budget(noise: Noise, paired: bool) -> None:
    assert findings(noise, BUDGET, paired, 0.05, 0.02, 100).count("higher") >= 95


def test_a_slowdown_that_the_floor_hides_is_inconclusive() -> None:
    assert findings(normal, BUDGET, False, 0.05, 0.08, 100).count("inconclusive") > 80
    noisy = findings(heavy_tails, 6, False, 0.05, 0.03, 100)
    assert noisy.count("inconclusive") > 80
    assert noisy.count("no difference") == 0


@pytest.mark.parametrize(("count", "paired"), [(6, False), (8, True)])
def test_what_is_called_detectable_is_found_in_95_percent(count: int, paired: bool) -> None:
    share = detectable(0.02, count, paired, floor=0.02)
    hits = findings(normal, count, paired, share, 0.02, COMPARISONS).count("higher")
    assert abs(hits / COMPARISONS - 0.95) < 0.04


def test_a_median_found_by_stopping_early_is_still_covered() -> None:
    generator, held = np.random.default_rng(3), 0
    for _ in range(300):
        values = list(np.exp(generator.normal(0, 0.05, 6)))
        while not state(values, 0.05, 20).done:
            values.append(float(np.exp(generator.normal(0, 0.05))))
        interval = median_interval(values)
        held += interval is not None and interval.low <= 1 <= interval.high
    assert binomtest(held, 300, 0.95, alternative="less").pvalue > 0.01, held


values = st.lists(st.floats(0.1, 10), min_size=6, max_size=9)


@given(values, values, st.booleans())
@settings(deadline=None)
def test_swapping_the_arms_swaps_the_answer(first: list[float], second: list[float], paired: bool) -> None:
    size = min(len(first), len(second))
    first, second = first[:size], second[:size]
    forward, other = (
        compare(first, second, paired=paired, floor=0.01),
        compare(second, first, paired=paired, floor=0.01),
    )
    swapped = {"higher": "lower", "lower": "higher"}
    assert other.finding == swapped.get(forward.finding, forward.finding)
    assert forward.p_value == pytest.approx(other.p_value)
    assert forward.ratio == pytest.approx(median(first) / median(second))
    assert forward.interval is not None and forward.ratio is not None
    assert forward.interval.low <= forward.ratio <= forward.interval.high


@given(values, values, st.booleans())
@settings(deadline=None)
def test_the_interval_excludes_zero_exactly_when_the_test_is_significant(
    first: list[float], second: list[float], paired: bool
) -> None:
    size = min(len(first), len(second))
    result = shift(np.array(first[:size]), np.array(second[:size]), paired, 0.95)
    assert result.low is not None and result.high is not None
    assert (result.p_value <= 0.05) == (result.low > 0 or result.high < 0)
