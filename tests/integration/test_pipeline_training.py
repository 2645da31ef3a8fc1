"""Pipelines compute what one process computes with the same micro-batches, in processes and in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.simulate import virtual_training
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import open_every_rank
from scaleproof.workloads.learner import model_learner
from tests.integration.launches import launches
from tests.short_form import train_case

STEPS = 6
BASE: dict[str, Any] = {
    "transport": "tcp",
    "workload": "small_gpt",
    "minibatch": 16,
    "steps": STEPS,
    "warmup": 0,
    "learning_rate": 0.05,
}
VIRTUAL: dict[str, Any] = {
    "fabric": {"name": "simulated", "link_mbit": 1000},
    "compute": {"name": "real", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
}
SYNCHRONOUS = ["gpipe", "dapple", "gems", "chimera", "chimera_doubling", "chimera_halving"]


def case_of(scheme: str, stages: int = 4, micro_batches: int = 8, **fields: Any) -> TrainCase:
    strategy = {
        "name": "pipeline",
        "scheme": scheme,
        "stages": stages,
        "micro_batches": micro_batches,
        "compare": "one_process",
    }
    own = {key: fields.pop(key) for key in ("pairs", "cut", "activations", "gradient_sync") if key in fields}
    return train_case(**{**BASE, "ranks": stages, "strategy": strategy | own, **fields})


def predicted(folder: Path, case: TrainCase) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    prediction = Predictor(folder).predict(PlannedLaunch(case, 0, 1000, 0))
    return prediction.checks, prediction.samples.to_pandas()


def difference(samples: pd.DataFrame) -> float:
    (value,) = samples[samples.event == "difference"].value
    return float(value)


@pytest.mark.parametrize("stages", [4, 8])
@pytest.mark.parametrize("scheme", SYNCHRONOUS)
def test_a_synchronous_schedule_computes_what_one_process_does(tmp_path: Path, scheme: str, stages: int) -> None:
    checks, samples = predicted(tmp_path, case_of(scheme, stages, 8, **VIRTUAL))
    assert [check["passed"] for check in checks] == [True]
    assert difference(samples) < 1e-6
    assert samples[samples.event == "backward"].value.nunique() >= 8


@pytest.mark.parametrize("scheme", ["pipedream", "pipedream_2bw"])
def test_a_schedule_without_a_flush_computes_something_else(tmp_path: Path, scheme: str) -> None:
    _, samples = predicted(tmp_path, case_of(scheme, 4, 8, **VIRTUAL))
    assert difference(samples) > 1e-5
    losses = samples[samples.event == "loss"].sort_values("step").value.tolist()
    assert losses[-1] < losses[0]


def one_update_late(case: TrainCase, seed: int, parameters: np.ndarray) -> float:
    """Largest difference from one process that updates with the gradient of the parameters of one update before."""
    network = network_of(case)
    learner, (data,) = model_learner(case, network, seed), open_every_rank(case, network, seed)
    before, now = learner.parameters.copy(), learner.parameters.copy()
    for step in range(case.steps):
        learner.parameters[:] = before
        learner.compute(data.batch(step))
        learner.parameters[:], before = now, now.copy()
        learner.update()
        now = learner.parameters.copy()
    return float(np.abs(now - parameters).max())


def test_two_versions_are_gradients_of_one_update_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_training, "difference_alone", one_update_late)
    _, samples = predicted(tmp_path, case_of("pipedream_2bw", 4, 8, **VIRTUAL))
    assert difference(samples) < 1e-6


def test_groups_of_ranks_share_a_minibatch(tmp_path: Path) -> None:
    checks, samples = predicted(tmp_path, case_of("chimera", 4, 4, ranks=8, **VIRTUAL))
    assert [check["passed"] for check in checks] == [True], checks
    assert difference(samples) < 1e-6


@pytest.mark.parametrize(
    "fields", [{"activations": "recomputed"}, {"gradient_sync": "late"}, {"gradient_sync": "eager_opt"}]
)
def test_an_option_of_time_changes_no_result(tmp_path: Path, fields: dict[str, Any]) -> None:
    _, samples = predicted(tmp_path, case_of("chimera", 4, 4, **VIRTUAL, **fields))
    assert difference(samples) < 1e-6


def test_four_pipelines_over_eight_workers(tmp_path: Path) -> None:
    _, samples = predicted(tmp_path, case_of("chimera", 8, 8, pairs=2, **VIRTUAL))
    assert difference(samples) < 1e-6


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, pd.DataFrame]]:
    """A launch over every transport."""
    cells = {"tcp": "dapple", "shm": "chimera", "gloo": "gpipe", "mpi": "gems"}
    cases = {
        name: case_of(scheme, transport=name, arm=name, launcher="mpirun" if name == "mpi" else "local")
        for name, scheme in cells.items()
    }
    folder = tmp_path_factory.mktemp("pipelines")
    run_plan(launches(list(cases.values())), folder, size="ci", deadline_s=120.0)
    store = Store(folder)
    records = {record.case_id: record for record in store.records()}
    found = {name: records[case.case_id] for name, case in cases.items()}
    return {name: (record, store.samples(record).to_pandas()) for name, record in found.items()}


@pytest.mark.parametrize("transport", ["tcp", "shm", "gloo", "mpi"])
def test_a_pipeline_of_processes_computes_what_one_process_does(
    real: dict[str, tuple[Record, pd.DataFrame]], transport: str
) -> None:
    record, samples = real[transport]
    assert record.status == "ok", record.failure
    assert difference(samples) < 1e-6
