"""Predictors of a cut-off: how many gradients a step waits for."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.strategies.cut_off_predictors import Ahead, Elfving, Oracle, PerWorker, Predictor, Seen, Static, best

NAN = np.nan


def seen(run: list[float] | np.ndarray, ran: float = 1.0) -> Seen:
    """A step in which every worker began at once; NaN: cut off, having computed for `ran`."""
    times = np.array(run, float)
    return Seen(times, times.copy(), np.full(len(times), ran))


def ahead(workers: int, busy: dict[int, float] | None = None, step: int = 1) -> Ahead:
    """`busy`: workers that still compute for the step before, and for how long they have."""
    lasted = np.zeros(workers)
    for worker, seconds in (busy or {}).items():
        lasted[worker] = seconds
    return Ahead(step, lasted, np.where(lasted > 0, step - 1, step))


def test_equal_times_wait_for_all() -> None:
    assert best(np.ones(8)) == 8
    for predictor in (Elfving(8), PerWorker(8)):
        predictor.observe(seen(np.ones(8)))
        assert predictor.choose(ahead(8)) == 8


def test_a_slow_half_is_cut_off_only_when_it_costs_more_than_it_gives() -> None:
    assert best(np.array([1.0] * 6 + [1.2] * 2)) == 8
    assert best(np.array([1.0] * 6 + [3.0] * 2)) == 6


def test_never_fewer_than_half() -> None:
    assert best(np.array([1e-6, 1.0, 1.0, 1.0, 1.0, 1.0])) >= 3


def test_workers_that_were_slow_are_expected_to_be_slow() -> None:
    predictor = PerWorker(8)
    for _ in range(5):
        predictor.observe(seen([1.0] * 6 + [4.0] * 2))
    assert predictor.choose(ahead(8)) == 6


def test_what_is_left_of_a_late_workers_work_is_added_to_its_time() -> None:
    predictor = PerWorker(4)
    predictor.observe(seen([1.0, 1.0, 1.0, 1.2]))
    assert predictor.choose(ahead(4)) == 4
    assert predictor.choose(ahead(4, busy={3: 0.2})) == 3


@pytest.mark.parametrize("predictor", [Elfving(4), PerWorker(4)])
def test_late_workers_are_imputed_and_counted(predictor: Predictor) -> None:
    assert predictor.observe(seen([1.0, 1.0, NAN, NAN])) == 2
    assert 2 <= predictor.choose(ahead(4)) <= 4


def test_a_static_share_looks_at_no_times() -> None:
    predictor = Static(100, 0.96)
    predictor.observe(seen(np.full(100, NAN)))
    assert predictor.choose(ahead(100)) == 96


def test_the_oracle_knows_the_next_delays() -> None:
    predictor = Oracle(lambda worker, step: 5.0 * (step == 1 and worker >= 6))
    assert predictor.choose(ahead(8, step=0)) == 8
    predictor.observe(seen(np.ones(8)))
    assert predictor.choose(ahead(8, step=1)) == 6


def test_the_oracle_knows_when_a_late_worker_will_be_ready() -> None:
    predictor = Oracle(lambda worker, step: 5.0 * (step == 0 and worker == 7))
    predictor.observe(seen([1.0] * 7 + [NAN]))
    assert predictor.choose(ahead(8, busy={7: 1.0})) == 7
    assert predictor.choose(ahead(8, busy={7: 5.99})) == 8


def test_expected_times_of_a_normal_law_are_those_of_its_order() -> None:
    predictor, generator = Elfving(8), np.random.default_rng(0)
    for _ in range(20):
        predictor.observe(seen(generator.normal(1.0, 0.1, 8)))
    drawn = np.sort(generator.normal(1.0, 0.1, (20_000, 8)), axis=1).mean(axis=0)
    assert predictor.choose(ahead(8)) == best(drawn)
