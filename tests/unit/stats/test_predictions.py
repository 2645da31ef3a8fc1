"""Intervals of predictions come from draws of uncertain inputs; copies never count as samples."""

import numpy as np
import pytest

from scaleproof.stats.prediction_intervals import by_repetition, central, difference, ratios, spread


def drawn(count, sigma=0.1, seed=1, base=10.0):
    dice = np.random.default_rng(seed)
    return {0: base} | {index: base * float(np.exp(dice.normal(0, sigma))) for index in range(1, count)}


def test_repetition_0_is_the_prediction_and_the_median_of_draws_where_it_is_missing():
    assert central(drawn(6)) == 10.0
    assert central({1: 3.0, 2: 1.0, 3: 2.0}) == 2.0


def test_equal_copies_give_no_width_and_say_why():
    estimate = spread(dict.fromkeys(range(6), 2.0))
    assert estimate is not None
    assert (estimate.low, estimate.high, estimate.method) == (2.0, 2.0, "no uncertainty in the inputs")


def test_fewer_repetitions_than_an_interval_needs_give_none():
    assert spread(drawn(5)) is None


def test_more_draws_do_not_narrow_the_interval_below_what_the_inputs_leave_open():
    few, many = spread(drawn(12)), spread(drawn(4000))
    assert few is not None and many is not None
    assert np.log(many.high / many.low) == pytest.approx(2 * 1.96 * 0.1, rel=0.05)
    assert np.log(few.high / few.low) > 0.2


def test_the_interval_holds_a_further_draw_as_often_as_it_says():
    held = 0
    for seed in range(400):
        estimate, another = spread(drawn(8, seed=seed)), drawn(2, seed=10_000 + seed)[1]
        assert estimate is not None
        held += estimate.low <= another <= estimate.high
    assert held / 400 == pytest.approx(0.95, abs=0.03)


def test_an_interval_ends_at_what_no_draw_can_exceed_and_says_so():
    values = {0: 9.9, 1: 10.0, 2: 9.0, 3: 10.0, 4: 9.8, 5: 10.0}
    free, cut, wide = spread(values), spread(values, most=10.0), spread(values, most=100.0)
    assert free is not None and cut is not None
    assert free.high > 10.5 and (cut.low, cut.high) == (free.low, 10.0)
    assert cut.coverage == free.coverage and "cut at what computing allows" in cut.method
    assert wide == free, "a limit that the interval does not reach changes nothing"


def test_a_cut_takes_nothing_from_what_the_interval_holds():
    held = []
    for seed in range(400):
        values = {index: min(value, 10.0) for index, value in drawn(8, seed=seed).items()}
        another = min(drawn(2, seed=10_000 + seed)[1], 10.0)
        estimates = spread(values), spread(values, most=10.0)
        held.append([estimate is not None and estimate.low <= another <= estimate.high for estimate in estimates])
    assert all(free == cut for free, cut in held)
    assert sum(cut for _, cut in held) / 400 == pytest.approx(0.92, abs=0.02), "half of all draws are at the limit"


def test_the_interval_holds_the_prediction_itself():
    estimate = spread({0: 100.0} | {index: 1.0 + index / 100 for index in range(1, 7)})
    assert estimate is not None and estimate.low < 1.1 and estimate.high == 100.0


def test_what_two_predictions_share_does_not_count_twice():
    first = drawn(10)
    second = {index: value * 2 for index, value in first.items()}
    assert set(ratios(second, first).values()) == {2.0}
    estimate = difference(second, first)
    assert (estimate.finding, estimate.ratio, estimate.p_value) == ("higher", 2.0, None)
    assert difference(first, second).finding == "lower"


def test_predictions_that_could_be_either_way_round_decide_nothing():
    assert difference(drawn(10, seed=1), drawn(10, seed=2)).finding == "inconclusive"
    assert difference(drawn(10), drawn(10)).finding == "no difference"
    assert difference(drawn(3), drawn(3)).finding == "inconclusive"


def test_several_cases_of_a_repetition_become_one_value():
    assert by_repetition([(1, 4.0), (0, 1.0), (0, 3.0), (0, 2.0)]) == {0: 2.0, 1: 4.0}
