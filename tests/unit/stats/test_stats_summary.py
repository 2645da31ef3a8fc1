"""Means by kind, Tukey's fences, normality before t, effect size and trend, against values worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from scaleproof.stats.summary import effect_size, mean, outliers, t_interval, trend

NORMAL = [9.8, 10.1, 10.0, 9.9, 10.3, 10.2, 9.7, 10.05]


def test_an_outlier_is_named_not_removed() -> None:
    named = outliers([10, 11, 10, 11, 10, 11, 30])
    assert (named.positions, named.count) == ((6,), 1)
    assert (named.low, named.high) == (8.5, 12.5)
    assert outliers([10, 11, 10, 11, 10, 11, 12]).count == 0
    assert outliers([1, 1, 100]).count == 0


def test_costs_have_an_arithmetic_and_rates_a_harmonic_mean() -> None:
    assert mean([1, 3], "cost") == 2
    assert mean([1, 3], "rate") == 1.5  # 2 units of work in 1 + 1/3 of time
    with pytest.raises(ValueError, match="rates above 0"):
        mean([0, 1], "rate")
    with pytest.raises(ValueError, match="at least one"):
        mean([], "cost")


def test_a_t_interval_of_normal_values_is_students() -> None:
    estimate = t_interval(NORMAL)
    low, high = stats.t.interval(0.95, 7, np.mean(NORMAL), stats.sem(NORMAL))
    assert estimate.interval is not None
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, 1.1, 1.05, 1.02, 0.98, 9.0], "not normal: Shapiro-Wilk p"),
        ([1.0, 2.0], "cannot be tested"),
        ([1.0] * 9, "all values are equal"),
    ],
)
def test_a_t_interval_is_refused_with_its_reason(values: list[float], reason: str) -> None:
    estimate = t_interval(values)
    assert estimate.interval is None
    assert reason in estimate.reason


def test_effect_size_is_in_standard_deviations_within_the_arms() -> None:
    assert effect_size([3, 5], [1, 3]) == pytest.approx(2 / np.sqrt(2))
    assert effect_size([1, 1], [1, 1]) == 0
    assert effect_size([1, 1], [2, 2]) == -np.inf
    with pytest.raises(ValueError, match="two values"):
        effect_size([1], [1, 2])


def test_a_trend_has_a_direction_and_a_chance() -> None:
    rising = trend([1, 1, 2, 2, 4, 4], [10, 11, 20, 21, 39, 40])
    assert rising.tau > 0.85 and rising.p_value < 0.05
    assert trend([1, 1, 2, 2, 4, 4], [40, 39, 21, 20, 11, 10]).tau < -0.85
    assert trend([1, 2, 3, 4, 5, 6], [3, 1, 6, 2, 5, 3]).p_value > 0.05
    assert trend([1, 2], [5, 5]).p_value == 1
    with pytest.raises(ValueError, match="two different x"):
        trend([1, 1], [1, 2])
