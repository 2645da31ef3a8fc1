"""Predictors of a cut-off: how many gradients a step waits for."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.strategies.cut_off_predictors import Elfving, Oracle, PerWorker, Predictor, Static, best


def test_equal_times_wait_for_all() -> None:
    assert best(np.ones(8)) == 8
    for predictor in (Elfving(8), PerWorker(8)):
        predictor.observe(np.ones(8), 1.0)
        assert predictor.choose() == 8


def test_a_slow_half_is_cut_off_only_when_it_costs_more_than_it_gives() -> None:
    assert best(np.array([1.0] * 6 + [1.2] * 2)) == 8
    assert best(np.array([1.0] * 6 + [3.0] * 2)) == 6


def test_never_fewer_than_half() -> None:
    assert best(np.array([1e-6, 1.0, 1.0, 1.0, 1.0, 1.0])) >= 3


def test_workers_that_were_slow_are_expected_to_be_slow() -> None:
    predictor = PerWorker(8)
    for _ in range(5):
        predictor.observe(np.array([1.0] * 6 + [4.0] * 2), 4.0)
    assert predictor.choose() == 6


@pytest.mark.parametrize("predictor", [Elfving(4), PerWorker(4)])
def test_late_workers_are_imputed_and_counted(predictor: Predictor) -> None:
    assert predictor.observe(np.array([1.0, 1.0, np.nan, np.nan]), 1.0) == 2
    assert 2 <= predictor.choose() <= 4


def test_a_static_share_looks_at_no_times() -> None:
    predictor = Static(100, 0.96)
    predictor.observe(np.full(100, np.nan), 1.0)
    assert predictor.choose() == 96


def test_the_oracle_knows_the_next_delays() -> None:
    delays = [0.0] * 6 + [5.0] * 2
    predictor = Oracle(8, lambda worker: delays[worker], lambda worker: 0.0)
    assert predictor.choose() == 8
    predictor.observe(np.ones(8), 1.0)
    assert predictor.choose() == 6


def test_expected_times_of_a_normal_law_are_those_of_its_order() -> None:
    predictor, generator = Elfving(8), np.random.default_rng(0)
    for _ in range(20):
        predictor.observe(generator.normal(1.0, 0.1, 8), 1.2)
    drawn = np.sort(generator.normal(1.0, 0.1, (20_000, 8)), axis=1).mean(axis=0)
    assert predictor.choose() == best(drawn)
