"""The suite easgd2015: its rows, its metrics on records made by hand, and the stability of turns in two ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import load_models
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite
from tests.short_form import case_from
from tests.unit.claims.claims_samples import record, samples, value

ROOT = Path(__file__).resolve().parents[3]
SUITE = "easgd2015"
FOLDER = ROOT / "suites" / "easgd2015"
TURNS = load_models(FOLDER / "models" / "__init__.py").turns
TRAIN: dict[str, Any] = {
    "program": "train",
    "suite": "easgd2015",
    "experiment": "training",
    "arm": "easgd",
    "ranks": 3,
    "transport": "tcp",
    "strategy": "elastic_averaging",
    "strategy.tau": 2,
    "workload": "dnn_digits",
    "workload.data": "digits",
    "minibatch": 64,
    "steps": 4,
    "warmup": 0,
}
OWN: dict[str, Any] = {
    "program": "own",
    "suite": "easgd2015",
    "experiment": "stability",
    "arm": "below_eta05",
    "entry": "round_robin",
    "ranks": 2,
    "transport": "tcp",
    "warmup": 0,
}
NUMBERS = 42634
"""Parameters of dnn_digits."""


def launch_of(case: dict[str, Any], *rows: tuple[Any, ...]) -> Launch:
    return Launch(record(case), samples(*rows))


def test_rows_are_settings_and_none_may_decide(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert [row.metric for row in rows.values()] == ["setting"] * 5 and not any(row.gate for row in rows.values())
    assert [claim.form.id for claim in load_claims(suite) if claim.row] == list(rows)


def test_accuracies_are_compared_in_points(metrics: dict[str, Metric]) -> None:
    pair = metrics["accuracy_points"].pair
    assert pair is not None
    ours, base = (with_accuracy(accuracy) for accuracy in (0.975, 0.98))
    assert pair(ours, base, None) == pytest.approx(-0.5)
    assert pair(launch_of(TRAIN, (0, "loss", 0, 0, 1)), base, None) is None


def with_accuracy(accuracy: float) -> Launch:
    launch = launch_of(TRAIN, (0, "test_accuracy", 0, 0, 1))
    return Launch(launch.record, launch.samples.assign(value=accuracy))


def losses(*values: float) -> Launch:
    launch = launch_of(TRAIN, *((1 + place % 2, "loss", place // 2, 0, 1) for place in range(len(values))))
    return Launch(launch.record, launch.samples.assign(value=values))


def test_curves_are_compared_step_by_step_over_all_ranks(metrics: dict[str, Metric]) -> None:
    pair = metrics["curve_difference"].pair
    assert pair is not None
    assert pair(losses(2.0, 2.0, 1.0, 1.0), losses(1.0, 3.0, 1.5, 0.9), None) == pytest.approx(0.1)
    assert pair(losses(2.0, 2.0), losses(2.0, 2.0, 1.0, 1.0), None) is None


def test_traffic_is_the_centre_down_and_a_difference_up_every_tau_steps(metrics: dict[str, Metric]) -> None:
    steps = [(worker, "step", step, 0, 1) for worker in (1, 2) for step in range(4)]
    sends = [(rank, "send", 0, 0, 1) for rank in (0, 0, 0, 0, 1, 1, 2, 2)]
    launch = launch_of(TRAIN, *steps, *sends)
    moved = np.where(launch.samples["event"] == "send", 4 * NUMBERS, 0)
    exact = Launch(launch.record, launch.samples.assign(nbytes=moved))
    assert value(metrics["model_bytes_ratio"], exact) == pytest.approx(1)
    assert value(metrics["model_bytes_ratio"], Launch(launch.record, launch.samples.assign(nbytes=2 * moved))) == 2


def test_the_centre_is_busy_when_it_does_not_wait(metrics: dict[str, Metric]) -> None:
    marks = [(rank, event, 0, at, at) for rank in range(3) for event, at in (("start", 0), ("end", 100))]
    steps = [(worker, "step", step, 0, 10) for worker in (1, 2) for step in range(4)]
    waits = [(0, "wait", 0, 0, 60), (1, "wait", 0, 0, 90)]
    launch = launch_of(TRAIN, *marks, *steps, *waits)
    assert value(metrics["centre_busy_s"], launch) == pytest.approx(0.04 / 4)


def norms(*values: float) -> Launch:
    launch = launch_of(OWN, *((0, "norm", step, 0, 1) for step in range(len(values))))
    return Launch(launch.record, launch.samples.assign(value=values))


def test_growth_is_that_of_the_later_rounds_and_divergence_has_one_too(metrics: dict[str, Metric]) -> None:
    growth = metrics["growth"]
    assert value(growth, norms(100, 10, 8, 4, 2, 1, 0.5, 0.25)) == pytest.approx(0.5)
    assert value(growth, norms(1, 3, 9, 27, 81, 243, float("inf"), float("nan"))) == pytest.approx(3)
    assert value(growth, norms(1, float("nan"), 1, 1, 1)) is None


@pytest.mark.parametrize("eta", [0.25, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("workers", [1, 3, 5])
def test_an_odd_number_of_workers_in_turn_is_stable_up_to_the_bound_and_not_beyond(workers: int, eta: float) -> None:
    assert TURNS.stability_limit(TURNS.Turns(workers=workers, eta=eta), Published()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("eta", [0.25, 0.5, 1.0, 1.5])
def test_an_even_number_is_stable_a_little_beyond_it(eta: float) -> None:
    limits = [TURNS.stability_limit(TURNS.Turns(workers=workers, eta=eta), Published()) for workers in (2, 4, 16)]
    assert limits == sorted(limits, reverse=True) and limits[-1] > 1.0001
    assert limits[0] <= 1 / TURNS.bound_of(eta) + 1e-6, "beyond alpha = 1 the determinant of a turn is below -1"


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("share", [0.98, 1.02])
def test_turns_in_virtual_time_grow_by_the_spectral_radius_of_a_round(
    tmp_path: Path, metrics: dict[str, Metric], workers: int, share: float
) -> None:
    fields = {
        **OWN,
        "ranks": workers + 1,
        "iterations": 200,
        "options": {"eta": 0.5, "share": share},
        "fabric": {"name": "simulated", "link_mbit": 10000, "costs": "stated"},
    }
    case = case_from(fields)
    predicted = Predictor(tmp_path).predict(PlannedLaunch(case, 0, 1, 0, str(FOLDER / "programs")))
    launch = Launch(record(fields), predicted.samples.to_pandas())
    expected = TURNS.radius(workers, 0.5, share * TURNS.bound_of(0.5))
    assert value(metrics["growth"], launch) == pytest.approx(expected, rel=0.01)
