"""When launches are enough: each outcome and its words."""

import pytest

from scaleproof.stats.stopping_rule import state


def test_a_narrow_interval_ends_it() -> None:
    stop = state([1.0, 1.01, 0.99, 1.02, 1.0, 0.98], 0.05, 10)
    assert (stop.done, stop.outcome) == (True, "reached")
    assert stop.half_width_share == pytest.approx(0.02)
    assert stop.reason == "6 launches: the interval reaches 2.0% from the median, the target is 5.0%"


def test_a_wide_interval_goes_on_until_the_budget_is_spent() -> None:
    wide = [1.0, 1.2, 0.8, 1.1, 0.9, 1.0]
    assert (state(wide, 0.05, 10).done, state(wide, 0.05, 10).outcome) == (False, "continue")
    assert "up to 4 more" in state(wide, 0.05, 10).reason
    spent = state(wide, 0.05, 6)
    assert (spent.done, spent.outcome) == (True, "budget spent")
    assert spent.reason.startswith("budget of 6 launches spent; 6 launches: the interval reaches 20.0%")


def test_the_farther_end_of_the_interval_counts() -> None:
    assert state([1.0, 1.01, 0.9, 1.0, 1.0, 1.0], 0.05, 10).half_width_share == pytest.approx(0.1)
    assert state([1.0, 0.99, 1.1, 1.0, 1.0, 1.0], 0.05, 10).half_width_share == pytest.approx(0.1)


def test_fewer_than_six_launches_never_reach_the_target() -> None:
    assert state([], 0.05, 10).outcome == "continue"
    stop = state([1.0] * 5, 0.05, 10)
    assert (stop.done, stop.half_width_share) == (False, None)
    assert "5 launches give no 95% interval, 6 do" in stop.reason
    assert state([1.0] * 5, 0.05, 5).outcome == "budget spent"


def test_the_interval_is_that_of_the_median_so_one_slow_launch_of_nine_does_not_hold_it_up() -> None:
    assert state([1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.0, 1.01, 5.0], 0.05, 20).outcome == "reached"


def test_equal_values_are_narrow_even_at_zero() -> None:
    assert state([0.0] * 6, 0.05, 10).outcome == "reached"
    assert state([-1.0, 1.0, -2.0, 2.0, -3.0, 3.0], 0.05, 10).half_width_share is None


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="target above 0"):
        state([1.0], 0, 10)
    with pytest.raises(ValueError, match="not finite"):
        state([float("inf")], 0.05, 10)
