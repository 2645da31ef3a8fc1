"""The learned predictor of a cut-off, on times whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaleproof.spec.contention_law import Contention
from scaleproof.strategies.cut_off_learned import OTHER_SEED, Learned, recorded_run
from scaleproof.strategies.cut_off_predictors import Ahead, Elfving, Seen, best
from tests.short_form import train_case

WORKERS, STEPS, SEED, BESIDE = 16, 200, 3, 0.01
HOSTS = Contention(1.0, 3.0, 0.03, 0.1, 2, 1.0, 0.0, 0.0, 0.05)
"""Half of the workers are slow together, three times as slow, for ten steps on average."""


def run_of(law: Contention, seed: int, steps: int) -> np.ndarray:
    return np.array([[law.delay(worker, WORKERS, seed, step) for worker in range(WORKERS)] for step in range(steps)])


def idle(step: int) -> Ahead:
    return Ahead(step, np.zeros(WORKERS), np.full(WORKERS, step))


@pytest.fixture(scope="module")
def learned_rates() -> dict[str, float]:
    """Gradients per second of each predictor where all workers begin every step together."""
    times = BESIDE + run_of(HOSTS, SEED, STEPS)
    learned = Learned(run_of(HOSTS, SEED + OTHER_SEED, 400), SEED, lambda w, s: HOSTS.delay(w, WORKERS, SEED, s))
    rates = {"all": WORKERS * STEPS / times.max(axis=1).sum(), "oracle": ideal(times)}
    for name, predictor in {"learned": learned, "elfving": Elfving(WORKERS)}.items():
        gradients, seconds = 0, 0.0
        for step, row in enumerate(times):
            count = WORKERS if step < 25 else predictor.choose(idle(step))
            length = np.sort(row)[count - 1]
            on_time = np.where(row <= length, row, np.nan)
            predictor.observe(Seen(on_time, on_time, np.full(WORKERS, length)))
            gradients, seconds = gradients + count, seconds + length
        rates[name] = gradients / seconds
    return rates


def ideal(times: np.ndarray) -> float:
    counts = [best(np.sort(row)) for row in times]
    return sum(counts) / sum(np.sort(row)[count - 1] for row, count in zip(times, counts, strict=True))


def test_it_learns_that_hosts_stay_slow(learned_rates: dict[str, float]) -> None:
    assert learned_rates["learned"] > learned_rates["elfving"]
    gained = (learned_rates["learned"] - learned_rates["all"]) / (learned_rates["oracle"] - learned_rates["all"])
    assert 0.5 < gained <= 1.0


def test_equal_times_wait_for_all() -> None:
    predictor = Learned(np.ones((50, WORKERS)), SEED, lambda worker, step: 1.0)
    for step in range(3):
        predictor.observe(Seen(np.full(WORKERS, 1.001), np.full(WORKERS, 1.001), np.ones(WORKERS)))
        assert predictor.choose(idle(step)) == WORKERS


def test_times_that_were_cut_off_are_imputed_above_what_they_have_taken() -> None:
    predictor = Learned(run_of(HOSTS, 1, 100), SEED, lambda worker, step: 1.0)
    predictor.observe(Seen(np.ones(WORKERS), np.ones(WORKERS), np.ones(WORKERS)))
    predictor.choose(idle(1))
    on_time = np.where(np.arange(WORKERS) < 10, 1.0, np.nan)
    assert predictor.observe(Seen(on_time, on_time, np.full(WORKERS, 1.5))) == 6
    assert predictor._history[-1].min() == 1.0 and predictor._history[-1][10:].min() >= 1.5


def test_the_same_seed_predicts_the_same_and_torch_keeps_its_own_draws() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    made = [Learned(run_of(HOSTS, 1, 40), SEED, lambda worker, step: 1.0) for _ in range(2)]
    for predictor in made:
        predictor.observe(Seen(np.ones(WORKERS), np.ones(WORKERS), np.ones(WORKERS)))
    assert made[0]._model.expected(np.ones((1, WORKERS)), 4).mean.tolist() == (
        made[1]._model.expected(np.ones((1, WORKERS)), 4).mean.tolist()
    )
    assert torch.equal(torch.rand(3), expected)


def test_it_learns_from_the_same_law_with_another_seed() -> None:
    law = "contention:1,2,0.02,0.1,2,1,0.9,0.1,0.08"
    case = train_case(
        transport="tcp", workload="dnn_digits", data="digits", ranks=4, minibatch=48, strategy="cut_off", step_delay=law
    )
    recorded = recorded_run(case, SEED)
    assert recorded.shape == (400, 3)
    assert recorded[7, 0] == Contention(1, 2, 0.02, 0.1, 2, 1, 0.9, 0.1, 0.08).delay(1, 4, SEED + OTHER_SEED, 7)
