"""Every rank by itself in the event engine: equal to the simulation of all ranks as vectors where that is exact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.folded_training import folding_of
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.program import exchange_plan, steps_of
from scaleproof.simulate.simulated_spans import Prediction, Span
from scaleproof.simulate.step_engine import Options, simulate
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.spec.cluster import cluster_of
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Jitter
from tests.unit.simulate.test_simulator import case_of, profile_of

COSTS = MessageCosts((Segment(None, 2e-5, 1e-10),), 3e-10)
MPI = {"transport": "mpi", "launcher": "mpirun"}
"""A transport whose messages wait for their receivers."""
UNEQUAL = Jitter(step_sigma=0.05, rank_sigma=0.1)


def sorted_spans(spans: Iterable[Span]) -> dict[tuple[str, int, int], list[list[float]]]:
    """Starts and ends of all ranks by event, step and bytes, in the order of their times."""
    found: dict[tuple[str, int, int], list[list[float]]] = {}
    for span in spans:
        found.setdefault((span.event, span.step, span.nbytes), []).append([*span.start, *span.end])
    return {key: sorted(values) for key, values in found.items()}


def assert_same(one: Prediction, other: Prediction) -> None:
    first, second = sorted_spans(one.spans), sorted_spans(other.spans)
    assert first.keys() == second.keys()
    for key, values in first.items():
        assert np.allclose(values, second[key], rtol=1e-9, atol=1e-12), key
    assert np.allclose(one.start, other.start) and np.allclose(one.end, other.end)


@pytest.mark.parametrize(
    ("fields", "costs", "jitter"),
    [
        ({"strategy": "sync"}, COSTS, None),
        ({"strategy": "sync"}, COSTS, UNEQUAL),
        ({}, COSTS, None),
        ({}, COSTS, UNEQUAL),
        ({"collective": "halving_doubling"}, COSTS, UNEQUAL),
        ({"collective": "tree", "ranks": 5, "minibatch": 60}, COSTS, UNEQUAL),
        ({"strategy.communication": "main"}, COSTS, UNEQUAL),
        ({"strategy": "distributed_update"}, COSTS, UNEQUAL),
        ({"strategy": "hybrid", "strategy.groups": 2}, COSTS, UNEQUAL),
    ],
)
def test_each_rank_by_itself_is_as_all_ranks_together(
    fields: dict[str, Any], costs: MessageCosts, jitter: Jitter | None
) -> None:
    case = case_of(**fields)
    profile, cluster = profile_of(case, update=1e-3), cluster_of(case)
    together = simulate(case, profile, cluster, costs, jitter=jitter, seed=3)
    buffer = buffered_nbytes(case)
    assert_same(simulate_each_rank(case, profile, cluster, costs, buffer=buffer, jitter=jitter, seed=3), together)


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy.bucket_order": "front_first", **MPI},
        {
            "strategy.bucket_order": "front_first",
            "strategy.forward_waits": "layer",
            "transport": "mpi",
            "launcher": "mpirun",
        },
        {"transport": {"name": "horovod", "fusion_mib": 0.5}, "collective": "native"},
        {"transport": {"name": "horovod", "fusion_mib": 64}, "collective": "native"},
    ],
)
def test_calls_whose_order_is_decided_when_the_channel_is_free_end_as_with_all_ranks_together(
    fields: dict[str, Any],
) -> None:
    """They start on all ranks together, when it is decided; as vectors, ranks that have nothing else to do start
    before."""
    case = case_of(**fields)
    profile, cluster = profile_of(case, update=1e-3), cluster_of(case)
    ends = [
        {
            key: sorted(span[len(span) // 2 :] for span in spans)
            for key, spans in sorted_spans(prediction.spans).items()
            if key[0] != "queue"
        }
        for prediction in (
            simulate(case, profile, cluster, COSTS, jitter=UNEQUAL, seed=3),
            simulate_each_rank(case, profile, cluster, COSTS, jitter=UNEQUAL, seed=3),
        )
    ]
    assert ends[0].keys() == ends[1].keys()
    assert all(np.allclose(ends[0][key], ends[1][key], rtol=1e-9) for key in ends[0])


def test_a_buffer_lets_a_rank_go_on_before_its_receiver_is_ready() -> None:
    case = case_of(**{"strategy": "sync", "strategy.bucket_mib": 25.0, "fabric.link_mbit": 8.0, "ranks": 8})
    profile, cluster = profile_of(case), cluster_of(case)
    alike = [simulate_each_rank(case, profile, cluster, COSTS, buffer=buffer).step_s for buffer in (0, 4 << 20)]
    assert alike[0] == pytest.approx(alike[1]), "in step every receiver is ready"
    waiting, buffered = (
        simulate_each_rank(case, profile, cluster, COSTS, buffer=buffer, jitter=UNEQUAL).step_s
        for buffer in (0, 4 << 20)
    )
    assert buffered < waiting


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"strategy.channels": 2}, (4, 1)),
        ({"collective": "halving_doubling", "ranks": 8}, (8, 1)),
        ({"ranks": 8, "nodes": 4}, (4, 2)),
        ({"collective": "hierarchical", "ranks": 8, "nodes": 4}, (8, 1)),
        ({"strategy": "hybrid", "strategy.groups": 2, "ranks": 8}, (8, 1)),
        ({"strategy": "hybrid", "strategy.groups": 2, "ranks": 8, "workload": "vgg_a"}, (2, 4)),
        ({"collective": "tree"}, None),
        ({"strategy": "parameter_server"}, None),
        ({"ranks": 1}, None),
    ],
)
def test_as_many_ranks_as_possible_stand_for_each_other(fields: dict[str, Any], shape: tuple[int, int] | None) -> None:
    case = case_of(**fields)
    plan, network = exchange_plan(case, network_of(case)), Network(cluster_of(case))
    nodes = [rank * case.nodes // case.ranks for rank in range(case.ranks)]
    folding = folding_of(case, plan, steps_of(case, plan, profile_of(case)), network, nodes)
    assert (folding and folding.replicas.ranks.shape) == shape


def test_ranks_that_differ_or_are_not_to_be_folded_are_simulated_each_by_itself(monkeypatch: Any) -> None:
    counted: list[int] = []
    work = Engine.work

    def counting(engine: Engine, seconds: Any, **how: Any) -> np.ndarray:
        counted.append(how.get("count", 1))
        return work(engine, seconds, **how)

    monkeypatch.setattr(Engine, "work", counting)
    case = case_of(**{"strategy.channels": 2})
    profile, cluster = profile_of(case), cluster_of(case)
    for most, how in ((1, {}), (4, {"jitter": UNEQUAL}), (4, {"options": Options(symmetry=False)})):
        counted.clear()
        simulate(case, profile, cluster, COSTS, **how)  # type: ignore[arg-type]
        assert max(counted) == most
