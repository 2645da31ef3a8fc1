"""Messages per second of the event engine on general graphs, beside SimGrid on the same graphs in the same run; one
call on a large cluster with two levels of switches; an iteration of a pipeline; and the memory of messages under
way."""

from __future__ import annotations

import gc
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.collective_graph import collective_graph
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.pipeline_graph import on_torus, pipelines
from scaleproof.simulate.rank_graph.random_graph import random_graph
from scaleproof.simulate.simgrid import foreign_run
from scaleproof.spec.cluster import Cluster, Link, node_name, star

DELAY_S = 20e-6
COSTS = MessageCosts((Segment(None, DELAY_S, 0.0),), 0.0)
NBYTES = 1e8
"""Of an all-reduce."""
OPERATIONS_A_RANK = 20
MOST_IN_SIMGRID = 128
"""Ranks: it lists the routes of all pairs."""
POD_S = 2.0
"""Target of a ring's call on 1,024 ranks."""
STAGES, REPLICAS, MICRO_BATCHES = 32, 64, 16
PIPELINE_S = 5.0
"""Target of an iteration on 2,048 ranks."""
BUFFER = 4 * 2.0**20
"""Bytes that a connection takes before its receiver reads."""
ROUNDS = 5
LARGE = 512
"""Random graphs from this number of ranks on run once."""


@pytest.fixture(scope="module")
def simgrid(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The program of simulate/simgrid/, where SimGrid is installed."""
    return foreign_run.build(tmp_path_factory.mktemp("simgrid")) if foreign_run.HEADER.is_file() else None


def pod(nodes: int, on_a_switch: int = 32) -> Cluster:
    """Leaf switches with their nodes at 10 Gbit/s, and a switch above them at 40 Gbit/s each."""
    leaves = [f"leaf{number}" for number in range(math.ceil(nodes / on_a_switch))]
    links = [Link((node_name(node), leaves[node // on_a_switch]), 10_000.0, 0.0) for node in range(nodes)]
    links += [Link((leaf, "core"), 40_000.0, 0.0) for leaf in leaves]
    return Cluster("pod", nodes, (*leaves, "core"), tuple(links))


def timed(once: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """s of each of several calls, after one that compiles and allocates; s of one call alone."""
    if rounds > 1:
        once()
    times = []
    for _ in range(rounds):
        gc.collect()
        started = time.perf_counter()
        once()
        times.append(time.perf_counter() - started)
    return times


def show(benchmark: BenchmarkFixture, times: list[float], row: dict[str, Any]) -> None:
    benchmark.extra_info.update(row)
    replayed = iter(times)
    benchmark.pedantic(lambda: time.sleep(next(replayed)), rounds=len(times))


def graph_of(name: str, ranks: int) -> tuple[RankGraph, Cluster]:
    if name == "ring":
        return collective_graph(pattern_of("ring", "all_reduce", ranks), NBYTES), star("star", ranks, 10_000.0, 0.0)
    return random_graph(Random(ranks), ranks, OPERATIONS_A_RANK * ranks), pod(ranks)


def simgrid_s(program: Path, name: str, graph: RankGraph, network: Network, end: float) -> float:
    """s of SimGrid's loop, in its fastest way that gives the same end: lazily computed rates are exact for a ring."""
    ranks, once = range(graph.ranks), foreign_run.fastest if name == "ring" else foreign_run.run
    runs = [once(program, graph, network, ranks, DELAY_S) for _ in range(ROUNDS)]
    assert runs[0].end.max() == pytest.approx(end, rel=1e-6)
    return statistics.median(run.wall_s for run in runs)


@pytest.fixture
def loop_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """s of each run of the engine's loop: SimGrid, too, says how long its own takes, without reading the graph."""
    times, run = [], Engine.run

    def timed_run(engine: Engine) -> np.ndarray:
        started = time.perf_counter()
        watched = run(engine)
        times.append(time.perf_counter() - started)
        return watched

    monkeypatch.setattr(Engine, "run", timed_run)
    return times


@pytest.mark.parametrize(
    ("name", "ranks"),
    [*(("ring", ranks) for ranks in (16, 128, 512)), *(("random", ranks) for ranks in (16, 128, LARGE, 2048))],
)
def test_messages_per_second_of_a_graph(
    name: str,
    ranks: int,
    rows: list[dict[str, Any]],
    simgrid: Path | None,
    loop_s: list[float],
    benchmark: BenchmarkFixture,
) -> None:
    graph, cluster = graph_of(name, ranks)
    network, messages = Network(cluster), len(graph.of_kind(Kind.SEND))
    once = name == "random" and ranks >= LARGE
    times = timed(lambda: run_graph(graph, network, range(ranks), COSTS), 1 if once else ROUNDS)
    loop = statistics.median(loop_s[-len(times) :])
    theirs = None
    if simgrid is not None and ranks <= MOST_IN_SIMGRID:
        end = float(run_graph(graph, network, range(ranks), COSTS).end.max())
        theirs = simgrid_s(simgrid, name, graph, network, end)
    row = {
        "arm": f"{name}, {ranks} ranks",
        "messages": messages,
        "seconds": round(statistics.median(times), 6),
        "loop_s": round(loop, 6),
        "messages_per_s": round(messages / loop),
        "ns_a_message_over_log_n": round(1e9 * loop / messages / math.log2(messages), 2),
        "simgrid_messages_per_s": None if theirs is None else round(messages / theirs),
        "target_messages_per_s": None if theirs is None else round(messages / theirs),
        "median_below_target": None if theirs is None else loop < theirs,
    }
    rows.append(row)
    show(benchmark, times, row)


def test_one_call_of_a_ring_in_a_pod_of_1024_ranks(rows: list[dict[str, Any]], benchmark: BenchmarkFixture) -> None:
    ranks = 1024
    network, pattern = Network(pod(ranks)), pattern_of("ring", "all_reduce", ranks)
    times = timed(lambda: Exchange(network, range(ranks), COSTS).run([Call(pattern, NBYTES, np.zeros(ranks))]))
    median, messages = statistics.median(times), 2 * (ranks - 1) * ranks
    row = {
        "arm": "one call of a ring, 1024 ranks in a pod",
        "messages": messages,
        "seconds": round(median, 6),
        "messages_per_s": round(messages / median),
        "target_s": POD_S,
        "median_below_target": median < POD_S,
    }
    rows.append(row)
    show(benchmark, times, row)


def pipeline_graph() -> RankGraph:
    """An iteration of replicas of a pipeline, about as GPT-2 with 1.5 billion parameters would be split; no two ranks
    compute equally long."""
    forward_s, activation, parameters = [10e-3] * STAGES, 3.3e6, [2e8] * STAGES
    graph = pipelines(forward_s, on_torus(STAGES, [REPLICAS]), MICRO_BATCHES, activation, parameters)
    factors = np.random.default_rng(1).lognormal(0.0, 0.02, len(graph))
    return replace(graph, amount=np.where(graph.kind == Kind.COMPUTE, graph.amount * factors, graph.amount))


def test_one_iteration_of_a_pipeline_on_2048_ranks(rows: list[dict[str, Any]], benchmark: BenchmarkFixture) -> None:
    graph = pipeline_graph()
    ranks, in_calls = range(graph.ranks), 2 * (REPLICAS - 1) * graph.ranks
    times = timed(lambda: run_graph(graph, Network(pod(graph.ranks)), ranks, COSTS, buffer=BUFFER))
    median, messages = statistics.median(times), len(graph.of_kind(Kind.SEND)) + in_calls
    row = {
        "arm": f"a pipeline of {STAGES} stages with {REPLICAS} replicas in a pod",
        "messages": messages,
        "seconds": round(median, 6),
        "messages_per_s": round(messages / median),
        "target_s": PIPELINE_S,
        "median_below_target": median < PIPELINE_S,
    }
    rows.append(row)
    show(benchmark, times, row)


@pytest.mark.parametrize("rounds", [1, 8])
def test_memory_of_a_call_grows_with_the_messages_under_way(
    rounds: int, rows: list[dict[str, Any]], benchmark: BenchmarkFixture
) -> None:
    """The same calls one after the other: as many messages are under way at a time, however many calls there are."""
    ranks = 256
    network, pattern = Network(pod(ranks)), pattern_of("ring", "all_reduce", ranks)
    Exchange(network, range(ranks), COSTS).run([Call(pattern, NBYTES, np.zeros(ranks))])
    tracemalloc.start()
    started = time.perf_counter()
    Exchange(network, range(ranks), COSTS).run([Call(pattern, NBYTES, np.zeros(ranks)) for _ in range(rounds)])
    seconds, peak = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    row = {
        "arm": f"{rounds} calls of a ring, {ranks} ranks in a pod",
        "messages": rounds * 2 * (ranks - 1) * ranks,
        "under_way_at_most": ranks,
        "peak_mib": round(peak / 2**20, 2),
    }
    rows.append(row)
    show(benchmark, [seconds], row)
