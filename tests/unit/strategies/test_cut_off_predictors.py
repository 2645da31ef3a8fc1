"""Predictors of a cut-off: how many gradients a step waits for."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.strategies.cut_off_predictors import Elfving, Oracle, PerWorker, Predictor, Static, best

NAN = np.nan


def observed(predictor: Predictor, times: list[float] | np.ndarray, ran: float = 1.0) -> int:
    """A step in which workers without a time had computed for `ran` when they were cut off."""
    return predictor.observe(np.array(times, float), np.full(len(times), ran))


def test_equal_times_wait_for_all() -> None:
    assert best(np.ones(8)) == 8
    for predictor in (Elfving(8), PerWorker(8)):
        observed(predictor, np.ones(8))
        assert predictor.choose(1) == 8


def test_a_slow_half_is_cut_off_only_when_it_costs_more_than_it_gives() -> None:
    assert best(np.array([1.0] * 6 + [1.2] * 2)) == 8
    assert best(np.array([1.0] * 6 + [3.0] * 2)) == 6


def test_never_fewer_than_half() -> None:
    assert best(np.array([1e-6, 1.0, 1.0, 1.0, 1.0, 1.0])) >= 3


def test_workers_that_were_slow_are_expected_to_be_slow() -> None:
    predictor = PerWorker(8)
    for _ in range(5):
        observed(predictor, [1.0] * 6 + [4.0] * 2)
    assert predictor.choose(5) == 6


@pytest.mark.parametrize("predictor", [Elfving(4), PerWorker(4)])
def test_late_workers_are_imputed_and_counted(predictor: Predictor) -> None:
    assert observed(predictor, [1.0, 1.0, NAN, NAN]) == 2
    assert 2 <= predictor.choose(1) <= 4


def test_a_worker_that_is_cut_off_is_expected_to_be_later_than_it_was() -> None:
    predictor = PerWorker(4)
    observed(predictor, [1.0, 1.0, 1.0, NAN], ran=3.0)
    assert predictor.choose(1) == 3


def test_a_static_share_looks_at_no_times() -> None:
    predictor = Static(100, 0.96)
    observed(predictor, np.full(100, NAN))
    assert predictor.choose(1) == 96


def test_the_oracle_knows_the_next_delays_and_learns_what_else_a_step_takes() -> None:
    delays = np.array([0.1] * 6 + [5.0] * 2)
    predictor = Oracle(lambda step: delays * (step > 0))
    assert predictor.choose(0) == 8
    observed(predictor, np.ones(8))
    assert predictor.choose(1) == 6
    predictor = Oracle(lambda step: delays * (step > 0))
    observed(predictor, np.full(8, 50.0))
    assert predictor.choose(1) == 8, "5 s are little beside 50"


def test_expected_times_of_a_normal_law_are_those_of_its_order() -> None:
    predictor, generator = Elfving(8), np.random.default_rng(0)
    for _ in range(20):
        observed(predictor, generator.normal(1.0, 0.1, 8))
    drawn = np.sort(generator.normal(1.0, 0.1, (20_000, 8)), axis=1).mean(axis=0)
    assert predictor.choose(20) == best(drawn)
