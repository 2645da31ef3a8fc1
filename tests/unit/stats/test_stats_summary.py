"""Tukey's fences and the trend, against values worked out by hand."""

import pytest

from scaleproof.stats.summary import outliers, trend


def test_an_outlier_is_named_not_removed() -> None:
    named = outliers([10, 11, 10, 11, 10, 11, 30])
    assert (named.positions, named.count) == ((6,), 1)
    assert (named.low, named.high) == (8.5, 12.5)
    assert outliers([10, 11, 10, 11, 10, 11, 12]).count == 0
    assert outliers([1, 1, 100]).count == 0


def test_a_trend_has_a_direction_and_a_chance() -> None:
    rising = trend([1, 1, 2, 2, 4, 4], [10, 11, 20, 21, 39, 40])
    assert rising.tau > 0.85 and rising.p_value < 0.05
    assert trend([1, 1, 2, 2, 4, 4], [40, 39, 21, 20, 11, 10]).tau < -0.85
    assert trend([1, 2, 3, 4, 5, 6], [3, 1, 6, 2, 5, 3]).p_value > 0.05
    assert trend([1, 2], [5, 5]).p_value == 1
    with pytest.raises(ValueError, match="two different x"):
        trend([1, 1], [1, 2])
