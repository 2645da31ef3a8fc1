"""The learned predictor of a cut-off, on times whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaleproof.spec.contention_law import Contention
from scaleproof.strategies import run_time_model
from scaleproof.strategies.cut_off import predictor_of
from scaleproof.strategies.cut_off_learned import RECORDED_SEED, Learned, trained
from scaleproof.strategies.cut_off_predictors import WINDOW, Elfving, Oracle, Predictor, Static
from scaleproof.strategies.run_time_model import RunTimeModel
from tests.short_form import train_case

WORKERS, STEPS, SEED, BESIDE, WARMUP = 16, 200, 3, 0.01, 25
HOSTS = Contention(1.0, 2.0, 0.02, 0.1, 4, 1.0, 0.0, 0.0, 0.05)
"""Four workers are slow together, twice as slow, for ten steps on average."""
ONES = np.ones(WORKERS)


def delays(step: int, seed: int = SEED) -> np.ndarray:
    return np.array([HOSTS.delay(worker, WORKERS, seed, step) for worker in range(WORKERS)])


def run_of(seed: int, steps: int) -> np.ndarray:
    return np.stack([delays(step, seed) for step in range(steps)])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that has learned little."""
    monkeypatch.setattr(run_time_model, "UPDATES", 5)


def rate(predictor: Predictor) -> float:
    """Gradients per second where each step's times are those of the law and BESIDE."""
    gradients, seconds = 0, 0.0
    for step in range(STEPS):
        times = BESIDE + delays(step)
        count = WORKERS if step < WARMUP else predictor.choose(step)
        length = np.sort(times)[count - 1]
        predictor.observe(np.where(times <= length, times, np.nan), np.full(WORKERS, length))
        gradients, seconds = gradients + count, seconds + length
    return gradients / seconds


def test_it_gains_by_what_it_has_learned() -> None:
    """Order statistics know as many slow workers, but not that a host stays slow."""
    model = RunTimeModel(run_of(RECORDED_SEED, 3000), WINDOW, SEED)
    learned, order_statistics = rate(Learned(model, SEED, delays)), rate(Elfving(WORKERS))
    assert learned > 1.02 * order_statistics
    assert learned > 1.02 * rate(Static(WORKERS, 1.0))
    assert rate(Oracle(lambda step: BESIDE + delays(step))) > learned


def test_equal_times_wait_for_all() -> None:
    predictor = Learned(RunTimeModel(np.ones((50, WORKERS)), WINDOW, SEED), SEED, lambda step: ONES)
    for step in range(3):
        predictor.observe(1.001 * ONES, ONES)
        assert predictor.choose(step) == WORKERS


@pytest.mark.usefixtures("quick")
def test_times_that_were_cut_off_are_imputed_above_what_they_have_taken() -> None:
    predictor = Learned(RunTimeModel(run_of(1, 100), WINDOW, SEED), SEED, lambda step: ONES)
    predictor.observe(ONES, ONES)
    predictor.choose(1)
    assert predictor.observe(np.where(np.arange(WORKERS) < 10, 1.0, np.nan), 1.5 * ONES) == 6
    assert predictor._history[-1][:10].max() == 1.0 and predictor._history[-1][10:].min() >= 1.5


@pytest.mark.usefixtures("quick")
def test_the_same_seed_predicts_the_same_and_torch_keeps_its_own_draws() -> None:
    torch.manual_seed(5)
    expected, threads = torch.rand(3), torch.get_num_threads()
    torch.manual_seed(5)
    models = [RunTimeModel(run_of(1, 40), WINDOW, SEED) for _ in range(2)]
    drawn = [model.expected(np.ones((1, WORKERS)), np.random.default_rng(2), 4).mean.tolist() for model in models]
    assert drawn[0] == drawn[1]
    assert torch.equal(torch.rand(3), expected) and torch.get_num_threads() == threads


@pytest.mark.usefixtures("quick")
def test_it_learns_once_from_the_same_law_with_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    learned_from = list[np.ndarray]()

    def watched(recorded: np.ndarray, window: int, seed: int) -> RunTimeModel:
        learned_from.append(recorded)
        return RunTimeModel(recorded, window, seed)

    monkeypatch.setattr("scaleproof.strategies.cut_off_learned.RunTimeModel", watched)
    trained.cache_clear()
    law = Contention(1, 2, 0.02, 0.1, 2, 1, 0.9, 0.1, 0.08)
    case = train_case(
        transport="tcp",
        workload="dnn_digits",
        data="digits",
        ranks=4,
        minibatch=48,
        strategy={"name": "cut_off", "predictor": "learned"},
        step_delay=f"contention:{','.join(map(str, law))}",
    )
    for seed in (SEED, SEED + 1):
        predictor_of(case, seed)
    trained.cache_clear()
    (recorded,) = learned_from
    assert recorded.shape == (3000, 3)
    assert recorded[7, 0] == law.delay(1, 4, RECORDED_SEED, 7) != law.delay(1, 4, SEED, 7)
