"""Intervals, bootstrap and interval union against values worked out by hand."""

import numpy as np
import pytest
from scipy.stats import quantile_test

from scaleproof.stats.bootstrap import calibrated, ratio, ratio_interval
from scaleproof.stats.intervals import median_interval, smallest_count


def test_six_values_give_their_range_at_96_9_percent() -> None:
    interval = median_interval([5, 1, 4, 2, 6, 3])
    assert interval is not None
    assert (interval.low, interval.high) == (1, 6)
    assert interval.coverage == pytest.approx(1 - 2 / 64)


def test_nine_values_drop_the_extremes() -> None:
    interval = median_interval(range(9))
    assert interval is not None
    assert (interval.low, interval.high) == (1, 7)
    assert interval.coverage == pytest.approx(1 - 2 * (1 + 9) / 512)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_intervals_of_a_median_are_scipys(confidence: float) -> None:
    for count in (1, 5, 6, 7, 10, 33, 100):
        values = np.random.default_rng(count).normal(size=count)
        ours, scipys = median_interval(values, confidence), quantile_test(values, p=0.5).confidence_interval(confidence)
        if np.isnan([scipys.low, scipys.high]).any():
            assert ours is None
        else:
            assert ours is not None and (ours.low, ours.high) == (scipys.low, scipys.high)


@pytest.mark.parametrize("count", range(6))
def test_fewer_than_six_values_have_no_interval(count: int) -> None:
    assert median_interval([1.0] * count) is None
    assert smallest_count() == 6


def test_a_ratio_is_of_medians_not_a_median_of_ratios() -> None:
    assert ratio([1, 2, 9], [1, 4, 2]) == 1.0


def test_a_paired_ratio_cancels_what_its_blocks_share() -> None:
    block = np.array([1.0, 1.5, 0.7, 1.2, 0.9, 1.1])
    paired, unpaired = ratio_interval(2 * block, block, paired=True), ratio_interval(2 * block, block)
    assert paired is not None and unpaired is not None
    assert paired.low == paired.high == 2.0
    assert unpaired.low < 1.6 and unpaired.high > 2.4


def test_the_same_results_give_the_same_interval() -> None:
    above, below = [2.0, 2.1, 1.9, 2.2, 2.0, 2.05], [1.0, 1.1, 0.9, 1.0, 1.02, 0.98]
    assert ratio_interval(above, below) == ratio_interval(above, below)


def test_a_ratio_needs_six_launches_a_side_and_no_zero_below() -> None:
    assert ratio_interval([1.0] * 5, [1.0] * 6) is None
    assert ratio_interval([1.0] * 6, [1.0] * 5 + [0.0]) is None
    with pytest.raises(ValueError, match="paired sides differ"):
        ratio_interval([1.0] * 6, [1.0] * 7, paired=True)


@pytest.mark.parametrize("paired", [False, True])
def test_a_bootstrap_of_six_launches_is_widened_until_it_covers_95_percent(paired: bool) -> None:
    nominal, attained = calibrated(6, paired)
    assert attained >= 0.95
    assert (nominal > 0.95) is paired
