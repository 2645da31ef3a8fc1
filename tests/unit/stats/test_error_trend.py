"""The trend of an error over numbers of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from scaleproof.stats.error_trend import ErrorAt, trend
from scaleproof.stats.intervals import Interval


def point(ranks: int, error: float, noise: float = 0.0, launches: int = 6) -> ErrorAt:
    """A prediction that is too fast by `error`, against launches that spread by `noise`."""
    below = 100 * (1 + noise * np.linspace(-1, 1, launches))
    return ErrorAt(ranks, (100 * (1 + error),), tuple(below), predicted=True)


def found(points: Sequence[ErrorAt]) -> tuple[float, Interval]:
    """A trend with its interval."""
    slope = trend(points)
    assert slope is not None and slope[1] is not None
    return slope[0], slope[1]


def test_the_slope_is_per_doubling_and_has_the_sign_of_the_change() -> None:
    for step in (0.03, -0.02):
        slope, interval = found([point(ranks, 0.01 + step * index) for index, ranks in enumerate((2, 4, 8, 16))])
        assert [slope, interval.low, interval.high] == pytest.approx([step] * 3)


def test_an_uneven_gap_counts_as_several_doublings() -> None:
    assert found([point(2, 0.0), point(16, 0.09)])[0] == pytest.approx(0.03)


def test_the_interval_grows_with_the_spread_of_launches_and_holds_the_slope() -> None:
    widths = []
    for noise in (0.01, 0.05):
        slope, interval = found([point(4, 0.02, noise), point(8, 0.05, noise)])
        assert interval.low < slope < interval.high
        widths.append(interval.high - interval.low)
    assert widths[1] > 3 * widths[0]


def test_few_launches_have_no_interval_and_one_number_of_ranks_no_trend() -> None:
    few = trend([point(4, 0.02), point(8, 0.05, launches=5)])
    assert few is not None and few[1] is None
    assert trend([point(4, 0.02)]) is None and trend([]) is None


def test_launches_on_both_sides_are_resampled() -> None:
    spread = tuple(np.linspace(90, 110, 6))
    sides = [ErrorAt(ranks, spread, (100.0,) * 6, predicted=False) for ranks in (2, 4)]
    slope, interval = found(sides)
    assert slope == 0 and interval.low < 0 < interval.high
