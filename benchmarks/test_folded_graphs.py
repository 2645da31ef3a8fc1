"""A step of data-parallel replicas of a pipeline: all of them in the event engine, and one that stands for all."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.test_event_engine import ROUNDS, show, timed
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.folded_run import run_folded
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.pipeline_graph import on_torus, pipelines
from scaleproof.spec.cluster import Cluster, Link, node_name, star

COSTS = MessageCosts((Segment(None, 20e-6, 0.0),), 1e-10)
STAGES, MICRO_BATCHES = 8, 8
FORWARD_S, ACTIVATION, PARAMETERS = 5e-3, 4e6, 1e8
"""s of a stage and a micro-batch; bytes of its activations, and of a stage's parameters."""


def pod(replicas: int) -> Cluster:
    """A leaf switch for each replica at 10 Gbit/s a node, and a switch above them at 40 Gbit/s each."""
    leaves = [f"leaf{number}" for number in range(replicas)]
    nodes = range(replicas * STAGES)
    links = [Link((node_name(node), leaves[node // STAGES]), 10_000.0, 0.0) for node in nodes]
    links += [Link((leaf, "core"), 40_000.0, 0.0) for leaf in leaves]
    return Cluster("pod", len(nodes), (*leaves, "core"), tuple(links))


@pytest.mark.parametrize("replicas", [4, 16, 64])
@pytest.mark.parametrize("cluster", ["star", "pod"])
def test_replicas_of_a_pipeline(
    cluster: str, replicas: int, rows: list[dict[str, Any]], benchmark: BenchmarkFixture
) -> None:
    equal = on_torus(STAGES, (replicas,))
    ranks = range(replicas * STAGES)
    network = Network(pod(replicas) if cluster == "pod" else star("star", len(ranks), 10_000.0, 0.0))
    seconds = (1 + np.arange(STAGES) / STAGES) * FORWARD_S
    started = time.perf_counter()
    graph = pipelines(seconds.tolist(), equal, MICRO_BATCHES, ACTIVATION, [PARAMETERS] * STAGES)
    emitted = time.perf_counter() - started
    whole = run_graph(graph, network, ranks, COSTS, buffer=4e6)
    assert np.allclose(run_folded(graph, equal, network, ranks, COSTS, buffer=4e6).end, whole.end, rtol=1e-9)
    all_s = timed(lambda: run_graph(graph, network, ranks, COSTS, buffer=4e6))
    one_s = timed(lambda: run_folded(graph, equal, network, ranks, COSTS, buffer=4e6))
    row = {
        "arm": f"{replicas} pipelines of {STAGES} stages, {cluster}",
        "ranks": len(ranks),
        "rounds": ROUNDS,
        "emitted_s": round(emitted, 6),
        "whole_s": round(statistics.median(all_s), 6),
        "folded_s": round(statistics.median(one_s), 6),
        "times_faster": round(statistics.median(all_s) / statistics.median(one_s), 2),
        "step_s": round(whole.seconds, 6),
    }
    rows.append(row)
    show(benchmark, one_s, row)
