"""The learned predictor of a cut-off, on times whose law is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A model that has learned little, and a cache of its own."""
    monkeypatch.setattr(run_time_model, "UPDATES", 5)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    trained.cache_clear()
    yield
    trained.cache_clear()


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

    class Watched(RunTimeModel):
        def __init__(self, recorded: np.ndarray, window: int, seed: int) -> None:
            learned_from.append(recorded)
            super().__init__(recorded, window, seed)

    monkeypatch.setattr("scaleproof.strategies.cut_off_learned.RunTimeModel", Watched)
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
        trained.cache_clear()  # as a process of another launch
    (recorded,) = learned_from
    assert recorded.shape == (3000, 3)
    assert recorded[7, 0] == law.delay(1, 4, RECORDED_SEED, 7) != law.delay(1, 4, SEED, 7)


def predicted(model: RunTimeModel) -> list[list[float]]:
    return model.expected(np.ones((1, 3)), np.random.default_rng(2), 4).mean.tolist()


def kept_models(folder: Path) -> list[Path]:
    return list(folder.glob("scaleproof/run_time_models/*"))


@pytest.mark.usefixtures("quick")
def test_a_model_that_was_kept_predicts_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = predicted(trained("gamma:2,1", 4))
    assert predicted(trained("gamma:2,2", 4)) != made and len(kept_models(tmp_path)) == 2
    trained.cache_clear()
    monkeypatch.setattr(RunTimeModel, "__init__", None)  # nothing is trained
    assert predicted(trained("gamma:2,1", 4)) == made


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("size", [0, 1000, -100])
def test_a_model_whose_file_is_not_whole_is_trained_again(tmp_path: Path, size: int) -> None:
    made = predicted(trained("gamma:2,1", 4))
    (kept,) = kept_models(tmp_path)
    whole = kept.read_bytes()
    kept.write_bytes(whole[:size])
    trained.cache_clear()
    assert predicted(trained("gamma:2,1", 4)) == made and len(kept.read_bytes()) == len(whole)


@pytest.mark.usefixtures("quick")
def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "scaleproof").write_text("not a folder")
    assert predicted(trained("gamma:2,1", 4))
