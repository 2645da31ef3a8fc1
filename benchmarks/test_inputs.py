"""The cost of input checks of a training launch, outside the timed region."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import open_data
from scaleproof.workloads.inputs.training import training_inputs

SEED = 20
BASE = {
    "program": "train",
    "suite": "bench",
    "experiment": "inputs",
    "arm": "a",
    "ranks": 1,
    "strategy": "local_only",
    "steps": 3,
    "minibatch": 64,
}
CASES: dict[str, dict[str, Any]] = {
    "digits": {"workload": "dnn_digits", "workload.data": "digits"},
    "gaussian_mixture": {"workload": "dnn_digits", "workload.data": "gaussian_mixture"},
    "synthetic": {"workload": "cd_dnn", "workload.width": 0.1},
}


@pytest.mark.parametrize("data", list(CASES))
def test_input_checks(data: str, benchmark: BenchmarkFixture) -> None:
    case = parse_case({**BASE, **CASES[data]})
    assert isinstance(case, TrainCase)
    network = network_of(case)
    benchmark(training_inputs, open_data(case, network, SEED, 0))
