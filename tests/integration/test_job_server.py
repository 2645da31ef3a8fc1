"""What a job server and its workers send and add, counted in virtual time, beside the two designs that are broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.made_up import MadeUp
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import train_case

METRICS: dict[str, Metric] = suite_metrics(Path(__file__).parents[2] / "suites" / "mimatrix2018")
COUNTED: dict[str, Any] = {
    "transport": "tcp",
    "workload": "dnn_digits",
    "fabric": {"name": "simulated", "link_mbit": 10_000},
    "compute": {"name": "replay", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.001},
    "steps": 4,
    "warmup": 0,
}
TENSORS = 8


def counted(folder: Path, workers: int, **options: Any) -> tuple[TrainCase, pd.DataFrame]:
    strategy = {"name": "job_server", "epoch_steps": 2, **options}
    case = train_case(**{**COUNTED, "strategy": strategy, "ranks": workers + 1, "minibatch": 8 * workers})
    return case, Predictor(folder).predict(PlannedLaunch(case, 0, 1000, 0)).samples.to_pandas()


def value(name: str, case: TrainCase, samples: pd.DataFrame) -> float | None:
    metric = METRICS[name].launch
    assert metric is not None
    return metric(MadeUp().record(case), samples)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_control_is_two_messages_for_each_worker_and_epoch_and_carries_no_parameters(
    tmp_path: Path, workers: int
) -> None:
    case, samples = counted(tmp_path, workers)
    assert value("control_per_epoch", case, samples) == 2
    assert value("models_through_server", case, samples) == 0
    assert value("handshakes_per_tensor", case, samples) == 0
    if workers > 1:
        assert value("reduction_ratio", case, samples) == pytest.approx(1, abs=1e-3)


def test_a_longer_epoch_has_no_more_messages(tmp_path: Path) -> None:
    short, long = (counted(tmp_path, 3, epoch_steps=steps)[1] for steps in (2, 3))
    assert (short.event == "control").sum() == 2 * 3 * 2
    assert (long.event == "control").sum() == 2 * 3 * 2, "3 steps and 1 step"


def test_a_job_server_that_sums_the_gradients_moves_and_adds_all_of_them(tmp_path: Path) -> None:
    case, samples = counted(tmp_path, 4, gradients="through_server")
    assert value("models_through_server", case, samples) == 1
    assert value("reduction_ratio", case, samples) == pytest.approx(4 * 4 / 3)
    assert value("control_per_epoch", case, samples) == 2


def test_workers_without_addresses_ask_each_peer_for_each_tensor(tmp_path: Path) -> None:
    case, samples = counted(tmp_path, 4, handshakes="each_tensor")
    assert value("handshakes_per_tensor", case, samples) == 3
    assert value("control_per_epoch", case, samples) == 2 + 2 * TENSORS * 3
    assert value("models_through_server", case, samples) == 0
