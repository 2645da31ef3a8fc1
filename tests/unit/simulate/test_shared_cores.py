"""Communication and computing share the cores of a node: what messages take of a core makes computing longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from scaleproof.core.missing_input import MissingInput
from scaleproof.rank_programs.effects import AwaitAll, Collective, Compute, Start, Started, weightless
from scaleproof.simulate import shared_cores as sharing
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.case_patterns import Patterns
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.predict import inputs_of
from scaleproof.simulate.server_threads import Threads
from scaleproof.simulate.shared_cores import SharedCores, shared_cores
from scaleproof.simulate.simulated_spans import Prediction
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.tensor_servers import Serving
from scaleproof.simulate.thread_times import ProcessorTime
from scaleproof.simulate.training_run import TrainingRun
from scaleproof.spec.cluster import cluster_of, star
from scaleproof.spec.errors import FieldError
from tests.short_form import case_from
from tests.unit.simulate.test_simulator import case_of, profile_of

ALPHA, BETA, GAMMA = 1e-4, 2e-10, 1e-10
SEND, RECEIVE = ProcessorTime(10e-6, 0.5e-10), ProcessorTime(20e-6, 0.4e-10)
COSTS = MessageCosts((Segment(None, ALPHA, BETA),), GAMMA, sending=SEND, receiving=RECEIVE)
NBYTES = 2e7
COMPUTE_S = 0.1


def end_s(nodes: list[int], cores: float, costs: MessageCosts = COSTS, compute_s: float = COMPUTE_S) -> float:
    """Ranks submit an all-reduce, compute beside it, and wait for it."""
    network = Network(star("star", max(nodes) + 1, None, 0.0))
    links, ranks = Threads.capacities(network, costs, len(nodes)), len(nodes)
    engine = Engine(np.concatenate([links, SharedCores.capacities(nodes, cores)]))
    shared = SharedCores(engine, len(links), nodes, 1, costs)
    calls = CallSchedules(engine, network, nodes, costs, 0.0, cores=shared)
    patterns, nothing = Patterns(case_of(ranks=ranks), 1), cast(Serving, None)
    run = TrainingRun(engine, ranks, patterns, calls, 1, False, nothing, None, shared)
    exchange = Start(Collective("all_reduce", weightless(NBYTES)))
    run.step(0, [exchange, Compute(compute_s, event="backward"), AwaitAll((Started(0),))], np.ones(ranks))
    run.run()
    return float(engine.end[run.main].max())


def processor_s(costs: MessageCosts = COSTS) -> float:
    """Of a core for a ring of two ranks: each sends and receives two halves and reduces one."""
    half = NBYTES / 2
    return 2 * (costs.sending.seconds(half) + costs.receiving.seconds(half)) + costs.gamma * half


def call_s(costs: MessageCosts = COSTS) -> float:
    """The call alone."""
    return 2 * (ALPHA + BETA * NBYTES / 2) + costs.gamma * NBYTES / 2


@pytest.mark.parametrize(("nodes", "cores"), [([0, 1], 1.0), ([0, 0], 2.0)])
def test_computing_on_a_full_core_takes_longer_by_what_the_messages_beside_it_take(
    nodes: list[int], cores: float
) -> None:
    assert end_s(nodes, cores) == pytest.approx(COMPUTE_S + processor_s(), rel=1e-9)


def test_messages_that_take_no_core_and_cores_for_all_slow_nothing_down() -> None:
    free = replace(COSTS, sending=ProcessorTime(), receiving=ProcessorTime(), gamma=0.0)
    assert end_s([0, 1], 1.0, free) == pytest.approx(COMPUTE_S)
    assert end_s([0, 1], 2.0) == end_s([0, 0], 4.0) == pytest.approx(COMPUTE_S)


@pytest.mark.parametrize("beside", [1.0, 0.25])
def test_an_exchange_with_nothing_beside_it_takes_what_alpha_beta_and_gamma_say(beside: float) -> None:
    """Also where both sides of a message take more of a core than the message lasts."""
    costs = replace(COSTS, sending=SEND.times(1 / beside), receiving=RECEIVE.times(1 / beside))
    assert end_s([0, 1], 1.0, costs, compute_s=0.0) == pytest.approx(call_s(), rel=1e-9)


def test_an_exchange_that_outlasts_computing_ends_between_its_own_time_and_both_times_together() -> None:
    computing = 0.3 * call_s()
    assert call_s() < end_s([0, 1], 1.0, compute_s=computing) < call_s() + computing


def predicted(fields: dict[str, Any], costs: MessageCosts = COSTS) -> Prediction:
    case = case_of(**{"strategy.bucket_mib": 0.05, **fields})
    return simulate(case, profile_of(case), cluster_of(case), costs)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"channels": 2},
        {"nodes": 2},
        {"strategy": "sync"},
        {"strategy": "parameter_server"},
        {"strategy": "distributed_update"},
    ],
)
def test_ranks_with_cores_for_all_threads_are_predicted_to_the_bit_as_before(fields: dict[str, Any]) -> None:
    plain, enough = predicted(fields), predicted({**fields, "fabric.cores": 8})
    assert len(plain.spans) == len(enough.spans)
    for one, other in zip(plain.spans, enough.spans, strict=True):
        assert np.array_equal(one.start, other.start) and np.array_equal(one.end, other.end)
    assert np.array_equal(plain.end, enough.end)


@pytest.mark.parametrize("strategy", ["sync_overlap", "distributed_update", "parameter_server"])
def test_a_step_that_exchanges_beside_its_computing_is_longer_on_a_shared_core(strategy: str) -> None:
    costs = replace(COSTS, sending=SEND.times(2), receiving=RECEIVE.times(2))
    wide, narrow = (
        predicted({"strategy": strategy, "fabric.cores": cores, "ranks": 2}, costs).step_s for cores in (2, 1)
    )
    assert narrow > wide * 1.01


def test_a_step_that_exchanges_after_its_computing_shares_nothing() -> None:
    after = {"strategy": "sync"}
    assert predicted({**after, "fabric.cores": 1}).step_s == predicted(after).step_s


@pytest.mark.parametrize(
    ("fields", "cores", "shared"),
    [
        ({}, None, None),
        ({}, 1, 1.0),
        ({}, 2, None),
        ({"channels": 2}, 2, 2.0),
        ({"nodes": 2}, 2, 2.0),
        ({"nodes": 2}, 4, None),
        ({"ranks": 3, "minibatch": 63, "nodes": 2}, 2, 2.0),
        ({"communication": "main"}, 1, None),
        ({"compute": {"name": "replay", "burns": True}}, 1, 1.0),
    ],
)
def test_cores_are_shared_where_a_node_has_fewer_than_threads(
    fields: dict[str, Any], cores: int | None, shared: float | None
) -> None:
    assert shared_cores(case_of(**fields, **{"fabric.cores": cores})) == shared


def test_a_case_may_take_the_cores_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case = case_of(**{"nodes": 2, "fabric.cores": "machine", "fabric.costs": "stated"})
    profile = {"compute": {"name": "real", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5}}
    whole = case.changed(profile)
    digests = []
    for cores in (2.0, 3.0, 4.0):
        monkeypatch.setattr(sharing, "usable_cores", lambda cores=cores: cores)
        assert shared_cores(case) == (cores if cores < 4 else None)
        digests.append(inputs_of(whole, tmp_path).digest)
    assert len(set(digests)) == 3, "a machine with other cores gives another prediction"
    monkeypatch.setattr(sharing, "usable_cores", lambda: 1.0)
    with pytest.raises(MissingInput, match="2 compute threads on a node, and this machine has 1 cores"):
        shared_cores(case)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"fabric.cores": 1, "nodes": 2}, "2 compute threads on a node of 1 cores"),
        ({"fabric.cores": 2, "compute": "none"}, "leave it out"),
        ({"fabric.cores": 2, "compute": "replay"}, "compute.burns"),
        ({"fabric.cores": 0}, "must be more than 0"),
        ({"fabric.cores": "few"}, "'few' is not a number"),
    ],
)
def test_cores_that_no_case_can_share_are_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        case_of(**fields)


def test_only_trainings_share_cores() -> None:
    transfer = {"program": "transfer", "suite": "s", "experiment": "e", "arm": "a", "ranks": 2, "transport": "tcp"}
    with pytest.raises(ValueError, match="a training computes") as raised:
        case_from({**transfer, "sizes": [8], "fabric": {"name": "simulated", "cores": 2}})
    error = raised.value.errors()[0]["ctx"]["error"]  # type: ignore[attr-defined]
    assert isinstance(error, FieldError) and error.field == "fabric.cores"
