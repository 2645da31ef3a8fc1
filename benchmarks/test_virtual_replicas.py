"""How long it takes to train replicas of the digits net in virtual time, each at its own pace and with real gradients:
the prediction of a launch from its inputs to the rows of its record."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.workloads.stacked_contract import StackedGradients
from scaleproof.workloads.stacked_dense import DenseReplicas

REPLICAS, STEPS, SAMPLES = 128, 1000, 8
"""Samples of a step of one replica."""
TARGET_S = 60.0
"""Of asynchronous replicas, on two cores."""
ARMS: dict[str, dict[str, Any]] = {
    "gossip": {"strategy": "gossip", "strategy.form": "pull"},
    "gossip, push": {"strategy": "gossip", "strategy.form": "push"},
    "server": {"strategy": "server"},
    "elastic averaging, every 10 steps": {"strategy": "elastic_averaging", "strategy.tau": 10},
    "local SGD, every 10 steps": {"strategy": "local_sgd", "strategy.tau": 10},
}
WITH_SERVER = ("server", "elastic averaging, every 10 steps")


def case_of(arm: str, replicas: int, steps: int) -> TrainCase:
    """No two replicas compute equally long."""
    case = parse_case(
        {
            "program": "train",
            "suite": "bench",
            "experiment": "replicas",
            "arm": "a",
            "fabric": "simulated",
            "fabric.link_mbit": 10_000.0,
            "fabric.stragglers": "lognormal:0.1",
            "transport": "tcp",
            "collective": "ring",
            "workload": "dnn_digits",
            "workload.data": "digits",
            "ranks": replicas + (arm in WITH_SERVER),
            "minibatch": SAMPLES * replicas,
            "steps": steps,
            "warmup": 0,
            "learning_rate": 0.01,
            "compute.profile": "xeon_e5_2698v3_x2",
            "compute.efficiency": 0.01,
            **ARMS[arm],
        }
    )
    assert isinstance(case, TrainCase)
    return case


@pytest.fixture
def replicas_of_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each computation of gradients: how many were computed together."""
    together, gradients = list[int](), DenseReplicas.gradients

    def counted(model: DenseReplicas, parameters: np.ndarray, *others: Any) -> StackedGradients:
        together.append(len(parameters))
        return gradients(model, parameters, *others)

    monkeypatch.setattr(DenseReplicas, "gradients", counted)
    return together


@pytest.mark.parametrize("arm", ARMS)
def test_replicas_train_in_virtual_time(
    arm: str, tmp_path: Path, rows: list[dict[str, Any]], replicas_of_calls: list[int], benchmark: BenchmarkFixture
) -> None:
    predictor = Predictor(tmp_path)
    predictor.predict(PlannedLaunch(case_of(arm, 4, 2), 0, 1, 0))  # which compiles the engine
    replicas_of_calls.clear()
    launch = PlannedLaunch(case_of(arm, REPLICAS, STEPS), 0, 1, 0)
    started, processor = time.perf_counter(), time.process_time()
    samples = benchmark.pedantic(predictor.predict, args=(launch,), rounds=1).samples
    seconds = time.perf_counter() - started
    row = {
        "arm": arm,
        "replicas": REPLICAS,
        "steps": STEPS,
        "events": samples.num_rows,
        "gradients_a_call": round(statistics.mean(replicas_of_calls), 1),
        "seconds": round(seconds, 2),
        "processor_s": round(time.process_time() - processor, 2),
        "us_a_step": round(1e6 * seconds / (REPLICAS * STEPS), 1),
        "target_s": TARGET_S,
        "below_target": seconds < TARGET_S,
    }
    rows.append(row)
    benchmark.extra_info.update(row)
