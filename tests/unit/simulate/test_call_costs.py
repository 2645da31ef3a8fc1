"""What a collective call takes beside its messages, and hand-overs between a rank's threads: simulated, fitted, and
left out in a control."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.calibrate.measured_handover import handover
from scaleproof.claims.finished_launch import Launch
from scaleproof.record.digest import machine_id
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_file import Parameter, read_costs, write_costs
from scaleproof.simulate.cost_fit import fit_transfer
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.halved_resources import halved
from scaleproof.simulate.predict import inputs_of, predict
from scaleproof.simulate.program import exchange_plan
from scaleproof.simulate.reduction_fit import fit_reduction
from scaleproof.simulate.simulated_sweeps import sweep
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.spec.cluster import cluster_of
from scaleproof.workloads.case_network import network_of
from tests.short_form import ring_case
from tests.unit.claims.claims_samples import record, samples
from tests.unit.simulate.test_predict import fitted, line, stored
from tests.unit.simulate.test_simulator import case_of, profile_of
from tests.unit.simulate.test_training_on_engine import MPI, UNEQUAL, assert_same

CALL_S, HANDOVER_S = 50e-6, 30e-6
COSTS = MessageCosts((Segment(None, 2e-5, 1e-10),), 3e-10, call=CALL_S, handover=HANDOVER_S)
SIZES = 4.0 ** np.arange(1, 13)


def step_s(costs: MessageCosts, **fields: Any) -> float:
    case = case_of(**fields)
    return simulate(case, profile_of(case), cluster_of(case), costs).step_s


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy": "sync"},
        {},
        {"collective": "halving_doubling"},
        {"strategy": "distributed_update"},
        {"strategy": "hybrid", "strategy.groups": 2},
        {"strategy.communication": "main"},
    ],
)
def test_calls_cost_the_same_for_all_ranks_together_and_each_by_itself(fields: dict[str, Any]) -> None:
    case = case_of(**fields)
    profile, cluster, buffer = profile_of(case, update=1e-3), cluster_of(case), buffered_nbytes(case)
    together = simulate(case, profile, cluster, COSTS, jitter=UNEQUAL, seed=3)
    assert_same(simulate_each_rank(case, profile, cluster, COSTS, buffer=buffer, jitter=UNEQUAL, seed=3), together)


@pytest.mark.parametrize("fields", [{"strategy": "sync"}, {}, {"strategy": "distributed_update"}])
def test_ranks_that_stand_for_others_pay_for_calls_as_all_do(fields: dict[str, Any]) -> None:
    case = case_of(**{"fabric.link_mbit": 100.0, **fields})
    profile, cluster = profile_of(case, update=1e-3), cluster_of(case)
    each, folded = (simulate_each_rank(case, profile, cluster, COSTS, fold=fold) for fold in (False, True))
    assert_same(folded, each)
    assert each.step_s > simulate_each_rank(case, profile, cluster, replace(COSTS, call=0.0)).step_s


@pytest.mark.parametrize("fields", [{}, {"strategy.bucket_order": "front_first", **MPI}, {"strategy.channels": 2}])
def test_every_call_takes_its_time_whoever_decides_its_turn(fields: dict[str, Any]) -> None:
    slow = {"fabric.link_mbit": 1.0, **fields}
    calls = len(exchange_plan(case_of(**slow), network_of(case_of(**slow))).nbytes)
    assert calls > 4
    longer = step_s(replace(COSTS, handover=0.0, call=1.0), **slow) - step_s(
        replace(COSTS, handover=0.0, call=0.0), **slow
    )
    assert longer == pytest.approx(calls / (2 if "strategy.channels" in fields else 1), rel=0.3)


def test_a_step_of_blocking_calls_takes_the_time_of_each_and_no_hand_over() -> None:
    calls = len(exchange_plan(case_of(strategy="sync"), network_of(case_of())).nbytes)
    longer = step_s(COSTS, strategy="sync") - step_s(replace(COSTS, call=0.0, handover=0.0), strategy="sync")
    assert longer == pytest.approx(calls * CALL_S)


def test_a_communication_thread_adds_a_hand_over_each_way() -> None:
    one_call = {"strategy.bucket_mib": 25.0, "fabric.link_mbit": 1.0}
    longer = step_s(COSTS, **one_call) - step_s(replace(COSTS, handover=0.0), **one_call)
    assert longer == pytest.approx(2 * HANDOVER_S)
    main = {**one_call, "strategy.communication": "main"}
    assert step_s(COSTS, **main) == step_s(replace(COSTS, handover=0.0), **main)


def test_a_call_alone_takes_its_time_once() -> None:
    case = ring_case(ranks=2, fabric="simulated", link_mbit=1000.0, sizes=[64, 65536], iterations=1, warmup=0)
    ends = [float(sweep(case, cluster_of(case), costs).end.max()) for costs in (COSTS, replace(COSTS, call=0.0))]
    assert ends[0] - ends[1] == pytest.approx(2 * CALL_S)


def test_calls_are_part_of_what_latency_is() -> None:
    case = case_of(strategy="sync")
    changed = halved(case, profile_of(case), cluster_of(case), COSTS)
    assert changed["latency"][3].call == CALL_S / 2 and changed["link"][3].call == CALL_S


@pytest.mark.parametrize(("call_s", "gamma"), [(5e-5, 2e-10), (0.0, 2e-10), (5e-5, 0.0)])
def test_the_fit_tells_a_call_from_its_messages_and_its_reduction(call_s: float, gamma: float) -> None:
    launches = np.random.default_rng(1).lognormal(0, 0.01, (7, len(SIZES)))
    sent = (1e-5 + 2e-10 * SIZES) * launches[::-1]
    reduced = (2 * (1e-5 + 2e-10 * SIZES / 2) + call_s + gamma * SIZES / 2) * launches
    found = fit_reduction("x", fit_transfer("x", SIZES, sent), "ring", 2, SIZES, reduced, (SIZES, sent))
    assert found.call.value == pytest.approx(call_s, rel=0.05, abs=2e-7)
    assert found.gammas[-1].value.value == pytest.approx(gamma, rel=0.2, abs=2e-11)
    assert found.call.low is not None and found.call.high is not None
    assert found.call.low <= call_s * 1.001 + 1e-6 and call_s <= found.call.high + 1e-6
    assert found.goodness.worst_error < 0.05


def test_a_hand_over_is_half_of_the_way_there_and_back() -> None:
    case = {"suite": "s", "experiment": "e", "arm": "handover", "program": "own", "entry": "handover", "ranks": 1}
    launches = [
        Launch(record(case, number), samples(*((0, "handover", step, 0, took) for step in range(3))))
        for number, took in enumerate([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    ]
    found = handover(launches)
    assert found is not None and found.value == pytest.approx(0.2e-3)
    assert found.low is not None and found.high is not None and found.low < 0.2e-3 < found.high
    assert handover([]) is None


def fitted_calls(folder: Path) -> Path:
    """tcp fitted on the host, with calls and hand-overs."""
    transport = fitted("tcp", "host", line((None, 1e-5, 1e-9)), 3e-10)
    [reduce] = transport.all_reduces
    assert reduce.rounds is not None
    rounds = reduce.rounds.model_copy(update={"call_s": Parameter(value=CALL_S, low=4e-5, high=6e-5)})
    stored(folder, transport.model_copy(update={"all_reduces": (reduce.model_copy(update={"rounds": rounds}),)}))
    costs = read_costs(folder, machine_id())
    assert costs is not None
    one_way = Parameter(value=HANDOVER_S, low=2e-5, high=4e-5)
    write_costs(folder, costs.model_copy(update={"handover_s": one_way}))
    return folder


def test_a_case_with_fitted_costs_has_calls_and_hand_overs_and_draws_them(tmp_path: Path) -> None:
    model = cost_model(case_of(), fitted_calls(tmp_path), machine_id())
    central = model.central()
    assert (central.call, central.handover) == (CALL_S, HANDOVER_S)
    names = [parameter.name for parameter in model.parameters]
    assert "time of a call of tcp/host" in names and "hand-over between threads" in names
    assert len({model.drawn(seed).call for seed in range(3)}) == 3


def test_a_control_is_predicted_without_calls_and_hand_overs(tmp_path: Path) -> None:
    fitted_calls(tmp_path)
    fabric = {"name": "simulated", "link_mbit": 1000.0, "costs": "fitted"}
    case = ring_case(ranks=2, fabric=fabric, sizes=[64], iterations=1, warmup=0)
    without = ring_case(ranks=2, fabric={**fabric, "call_times": 0}, sizes=[64], iterations=1, warmup=0)
    ends = [float(predict(inputs_of(each, tmp_path)).end.max()) for each in (case, without)]
    assert ends[0] - ends[1] == pytest.approx(CALL_S)
    costs = inputs_of(without, tmp_path).costs.central()
    assert costs.call == costs.handover == 0
