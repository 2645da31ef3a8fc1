"""One replica that stands for all takes as long as all of them together, on every network on which they are alike."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scaleproof.rank_programs.graph.rank_graph import RankGraph
from scaleproof.rank_programs.graph.replicas import Replicas
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import HopCosts, MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.folded_run import run_folded
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.pipeline_graph import on_torus, pipelines
from scaleproof.simulate.rank_graph.random_graph import random_replicas
from scaleproof.spec.cluster import Cluster, Link, node_name, star

COSTS = MessageCosts(
    (Segment(None, 2e-5, 1e-10),),
    3e-10,
    others=(("several_switches", HopCosts((Segment(None, 5e-5, 2e-10),))),),
    call=4e-5,
)
buffers = st.sampled_from([0.0, 1e5, 4e6])
rates = st.sampled_from([100.0, 1000.0, 3000.0])
seeds = st.integers(0, 2**31)


def own_switches(replicas: int, ranks: int, mbit: float) -> Cluster:
    """A switch for each replica, and one above them."""
    switches = [f"leaf{replica}" for replica in range(replicas)]
    nodes = range(replicas * ranks)
    links = [Link((node_name(node), switches[node // ranks]), 1000.0, 0.01) for node in nodes]
    links += [Link((switch, "core"), mbit, 0.02) for switch in switches]
    return Cluster("pod", replicas * ranks, (*switches, "core"), tuple(links))


def shared_link(replicas: int, ranks: int, mbit: float) -> Cluster:
    """Every second rank of a replica is behind one link that all replicas share."""
    nodes = range(replicas * ranks)
    links = [Link((node_name(node), "near" if node % ranks % 2 else "far"), 1000.0, 0.0) for node in nodes]
    links.append(Link(("near", "far"), mbit, 0.0))
    return Cluster("halves", replicas * ranks, ("near", "far"), tuple(links))


def a_star(replicas: int, ranks: int, mbit: float) -> Cluster:
    return star("star", replicas * ranks, mbit, 0.01)


CLUSTERS = st.sampled_from([a_star, own_switches, shared_link])


def assert_same(graph: RankGraph, replicas: Replicas, cluster: Cluster, buffer: float) -> None:
    network, ranks = Network(cluster), range(graph.ranks)
    whole = run_graph(graph, network, ranks, COSTS, buffer=buffer)
    folded = run_folded(graph, replicas, network, ranks, COSTS, buffer=buffer)
    assert np.allclose(folded.start, whole.start, rtol=1e-9, atol=1e-12)
    assert np.allclose(folded.end, whole.end, rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 5), st.integers(1, 3), st.integers(1, 30), CLUSTERS, rates, buffers)
@example(104, 3, 2, 19, shared_link, 1000.0, 4e6)  # a flow's limit and a link's level differ by rounding alone
def test_random_graphs(seed, count, ranks, operations, cluster, mbit, buffer):
    graph, replicas = random_replicas(Random(seed), count, ranks, operations)
    assert_same(graph, replicas, cluster(count, ranks, mbit), buffer)


@settings(max_examples=40, deadline=None)
@given(
    seeds,
    st.integers(1, 4),
    st.sampled_from([((5,), "ring"), ((8,), "ring"), ((2, 2, 2), "halving_doubling"), ((2, 2), "recursive_doubling")]),
    st.integers(1, 4),
    CLUSTERS,
    rates,
    buffers,
)
def test_replicas_of_pipelines(seed, stages, calls, micro_batches, cluster, mbit, buffer):
    (shape, algorithm), random = calls, np.random.default_rng(seed)
    replicas = on_torus(stages, shape)
    seconds, sizes = random.random(stages) * 1e-2, random.integers(1, 10**6, stages + 1).astype(float)
    graph = pipelines(seconds.tolist(), replicas, micro_batches, sizes[-1], sizes[:-1].tolist(), algorithm)
    assert_same(graph, replicas, cluster(replicas.count, stages, mbit), buffer)


@pytest.mark.parametrize(("shape", "algorithm"), [((8,), "ring"), ((2, 2, 2), "halving_doubling")])
def test_several_ranks_on_a_node_are_folded_too(shape: tuple[int, ...], algorithm: str) -> None:
    replicas = on_torus(2, shape)
    graph = pipelines([1e-3, 2e-3], replicas, 3, 1e5, [1e6, 2e6], algorithm)
    network, nodes = Network(star("star", 8, 1000.0, 0.0)), [rank // 2 for rank in range(16)]
    whole = run_graph(graph, network, nodes, COSTS, buffer=1e6)
    assert np.allclose(run_folded(graph, replicas, network, nodes, COSTS, buffer=1e6).end, whole.end, rtol=1e-9)
