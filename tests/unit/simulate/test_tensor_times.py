"""What parameter servers take for a tensor: fitted, simulated, and left out in a control."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaleproof.calibrate.measured_tensors import tensor_cost
from scaleproof.claims.finished_launch import Launch
from scaleproof.record.digest import machine_id
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_file import Parameter
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.fitted_tensors import FREE
from scaleproof.simulate.tensor_file import TensorCost, write_tensors
from scaleproof.simulate.tensor_file import TensorTimes as Stored
from scaleproof.simulate.thread_times import TensorTimes
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import cluster_of
from scaleproof.workloads.case_network import network_of
from tests.unit.claims.claims_samples import record, samples
from tests.unit.simulate.test_predict import fitted, line, stored
from tests.unit.simulate.test_simulator import case_of, profile_of

COSTS = MessageCosts((Segment(None, 1e-9, 1e-13),), 0.0)
SERVERS: dict[str, Any] = {"strategy": "parameter_server", "strategy.servers": 1, "fabric.link_mbit": 1e9}


def served(**fields: Any) -> TrainCase:
    return case_of(**SERVERS, **fields)


def step_s(case: TrainCase, tensors: TensorTimes) -> float:
    return simulate_each_rank(case, profile_of(case), cluster_of(case), replace(COSTS, tensors=tensors)).step_s


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_server_serves_each_worker_of_a_tensor_after_the_other(ranks: int) -> None:
    case = served(ranks=ranks)
    tensors = len(network_of(case).parameter_shapes)
    longer = step_s(case, TensorTimes(serve=1.0)) - step_s(case, TensorTimes())
    assert longer == pytest.approx(tensors * (ranks - 1), rel=0.05)


def test_a_workers_pass_is_longer_by_what_it_hands_over_and_a_servers_step_begins_later() -> None:
    case = served(ranks=2)
    tensors = len(network_of(case).parameter_shapes)
    assert step_s(case, TensorTimes(push=1.0)) - step_s(case, TensorTimes()) == pytest.approx(tensors, rel=0.05)
    assert step_s(case, TensorTimes(begin=1.0)) - step_s(case, TensorTimes()) == pytest.approx(tensors, rel=0.05)


def launch(number: int, times: float) -> Launch:
    """Three tensors: handed over 2 ms after each other, the server begins in 3 ms and serves one in 5 ms."""
    case: dict[str, Any] = {
        "suite": "s",
        "experiment": "e",
        "arm": "tcp",
        "program": "train",
        "strategy": "parameter_server",
    }
    case |= {"compute": "none", "ranks": 2, "transport": "tcp", "collective": "ring", "workload": "cd_dnn"}
    case |= {"minibatch": 2, "steps": 1}
    rows: list[tuple[Any, ...]] = []
    for index in range(3):
        rows.append((1, "communication", 0, 2 * times * index, 100 * times))
        rows.append((0, "communication", 0, 3 * times, 20 * times + 5 * times * index - 3 * times))
    rows += [(rank, "step", 0, 0, 200 * times) for rank in range(2)]
    return Launch(record(case, number), samples(*rows))


def test_times_of_tensors_are_read_from_the_order_in_which_tensors_go_and_come() -> None:
    found = tensor_cost("tcp", [launch(number, 1 + number / 100) for number in range(7)])
    values = [each.value for each in (found.push_s, found.begin_s, found.serve_s)]
    assert values == pytest.approx([2e-3 * 1.03, 1e-3 * 1.03, 5e-3 * 1.03], rel=0.01)
    assert found.serve_s.low is not None and found.serve_s.low < values[2]


def test_a_case_takes_what_was_fitted_over_its_transport_or_says_that_it_takes_nothing(tmp_path: Path) -> None:
    stored(tmp_path, fitted("tcp", "host", line((None, 1e-5, 1e-9)), 3e-10))
    case = served(ranks=2, **{"fabric.costs": "fitted"})
    without = cost_model(case, tmp_path, machine_id())
    assert FREE in without.assumed and without.central().tensors == TensorTimes()
    value = Parameter(value=1e-5, low=9e-6, high=2e-5)
    cost = TensorCost(
        arm="tcp", transport="tcp", fabric="netns", launches=6, push_s=value, begin_s=value, serve_s=value, runs=()
    )
    times = Stored(
        machine=machine_id(),
        code="",
        fitted_at="",
        suite="micro",
        experiment="tensors",
        size="smoke",
        transports=(cost,),
    )
    write_tensors(tmp_path, times)
    model = cost_model(case, tmp_path, machine_id())
    assert FREE not in model.assumed and model.central().tensors == TensorTimes(1e-5, 1e-5, 1e-5)
    assert model.central().times(cores=0.0).tensors == TensorTimes(), "the control without the time of cores"
