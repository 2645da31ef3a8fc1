"""A training strategy's step as a graph takes as long as the simulator says, also from a GOAL file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.rank_programs.graph.expanded import expanded
from scaleproof.rank_programs.graph.goal import read_goal, write_goal
from scaleproof.rank_programs.graph.rank_graph import Kind
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.step_graph import step_graph
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.errors import SpecError
from tests.unit.simulate.test_simulator import case_of, profile_of

COSTS = MessageCosts((Segment(None, 2e-5, 1e-10),), 3e-10, call=4e-5, handover=3e-5)
MPI = {"transport": "mpi", "launcher": "mpirun"}
VGG = {"workload": "vgg_a", "strategy.bucket_mib": 25.0}
CASES: list[dict[str, Any]] = [
    {"strategy": "sync"},
    {},
    VGG,
    {"strategy.channels": 2, **MPI},
    {"collective": "halving_doubling", **MPI},
    {"collective": "tree", "ranks": 5, "minibatch": 60},
    {"strategy": "distributed_update", **VGG},
    {"strategy": "hybrid", "strategy.groups": 2, "ranks": 8, **VGG},
    {"strategy": "hybrid", "strategy.groups": 1},
]
SERVERS = [
    {"strategy": "parameter_server", "strategy.servers": 1},
    {"strategy": "parameter_server", "strategy.servers": 3, "workload": "vgg_a"},
]


def alone(**fields: Any) -> TrainCase:
    """A case with a single step."""
    return case_of(**{"steps": 1, "warmup": 0, **fields})


def predicted_and_run(case: TrainCase, by_messages: Path | None = None) -> tuple[float, float]:
    """What the simulator predicts of a step, and the end of its graph; `by_messages`: written there and read again."""
    profile, cluster = profile_of(case, 1.1e-3, 0.7e-3, 0.9e-3, 1.3e-3), cluster_of(case)
    graph, buffer = step_graph(case, profile, COSTS.gamma, COSTS.handover), buffered_nbytes(case)
    if by_messages is not None:
        write_goal(by_messages, expanded(graph, COSTS.gamma, COSTS.call))
        graph = read_goal(by_messages)
    network, ranks = Network(cluster, COSTS.goodput), range(case.ranks)
    own = 0.0 if case.plugin("strategy").has_servers else buffer  # which wait for messages from the beginning
    ran = run_graph(graph, network, ranks, COSTS, buffer=own, collective_buffer=buffer)
    return simulate(case, profile, cluster, COSTS).step_s, ran.seconds


@pytest.mark.parametrize("fields", CASES, ids=lambda fields: " ".join(map(str, fields.values())))
def test_the_graph_of_a_step_takes_as_long_as_the_simulator_says(fields: dict[str, Any]) -> None:
    predicted, seconds = predicted_and_run(alone(**fields))
    assert seconds == pytest.approx(predicted, rel=1e-6)


@pytest.mark.parametrize("fields", CASES[:3], ids=lambda fields: " ".join(map(str, fields.values())))
def test_so_does_its_goal_file(tmp_path: Path, fields: dict[str, Any]) -> None:
    predicted, seconds = predicted_and_run(alone(**fields), tmp_path / "step.goal")
    assert seconds == pytest.approx(predicted, rel=1e-6)


@pytest.mark.parametrize("fields", SERVERS, ids=lambda fields: str(fields["strategy.servers"]))
def test_what_servers_do_is_sends_receives_and_sums_of_each_rank(fields: dict[str, Any]) -> None:
    predicted, seconds = predicted_and_run(alone(**fields))
    assert seconds == pytest.approx(predicted, rel=1e-6)


def test_a_step_with_channels_has_collectives_on_two_lanes() -> None:
    case = alone(**{"strategy.channels": 2})
    graph = step_graph(case, profile_of(case))
    assert sorted(set(graph.lane[graph.of_kind(Kind.COLLECTIVE)].tolist())) == [1, 2]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"transport": {"name": "horovod", "fusion_mib": 64}, "collective": "native"}, "fuses tensors as they come"),
        ({"strategy.communication": "main"}, "strategy.communication main: a graph cannot express this"),
        ({"strategy.bucket_order": "front_first"}, "strategy.bucket_order front_first: a graph cannot"),
    ],
)
def test_a_step_that_is_no_graph_is_refused(fields: dict[str, Any], words: str) -> None:
    case = alone(**fields)
    with pytest.raises(SpecError, match=words) as error:
        step_graph(case, profile_of(case))
    assert "\n" not in str(error.value)
