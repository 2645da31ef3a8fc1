"""A graph runs as a rank program: in virtual time as long as the engine's own run of it, and over a mailbox."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scaleproof.rank_programs.graph.graph_program import GraphProgram
from scaleproof.rank_programs.graph.rank_graph import Builder, RankGraph
from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.random_graph import random_cluster, random_graph
from scaleproof.simulate.virtual_run import VirtualRun
from scaleproof.spec.case import OwnCase
from scaleproof.spec.cluster import Cluster, star
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from

RATE = 1000.0
"""Bytes/s of each link."""
LARGE = 1e12
"""A buffer that holds everything: a mailbox takes all that comes."""


def virtual(graph: RankGraph, cluster: Cluster, steps: int = 1) -> VirtualRun:
    """After its run, in which all checks passed."""

    class Program(GraphProgram):
        @classmethod
        def graph_of(cls, case: OwnCase) -> RankGraph:
            return graph

    fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": graph.ranks}
    fabric = {"name": "simulated", "link_mbit": 10}
    case = case_from({**fields, "fabric": fabric, "options": {"graph": "a.goal"}, "iterations": steps, "warmup": 0})
    assert isinstance(case, OwnCase)
    run = VirtualRun(Program, case, Network(cluster), range(graph.ranks), FREE, LARGE)
    checks = [check for program in run.run() for check in program.checks()]
    assert len(checks) == 2 * graph.ranks and all(passed for _, passed, _ in checks), checks
    return run


def longest(run: VirtualRun) -> float:
    """Seconds of the first step, from the first start to the last end."""
    steps = [event for event in run.events if event.event == "step" and event.step == 0]
    return max(event.end for event in steps) - min(event.start for event in steps)


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_take_as_long_as_in_the_engine_itself(seed: int) -> None:
    generator = Random(seed)
    ranks = generator.randrange(2, 9)
    graph, cluster = random_graph(generator, ranks, 60), random_cluster(generator, ranks)
    engine = run_graph(graph, Network(cluster), range(ranks), FREE, buffer=LARGE)
    assert longest(virtual(graph, cluster)) == pytest.approx(engine.seconds, rel=1e-6)


def test_lanes_starts_and_writes_take_as_long_as_in_the_engine_itself() -> None:
    builder = Builder(2)
    first = builder.compute(0, 1.0)
    builder.compute(0, 1.0)
    late = builder.compute(0, 5.0, lane=1)
    builder.wait_for_start(late, builder.compute(0, 1.0, [first]))
    written = builder.put(0, 1, 500, [first])
    builder.compute(1, 2.0, [written])
    graph, cluster = builder.graph(), star("star", 2, RATE / MBIT, 0.0)
    seconds = run_graph(graph, Network(cluster), range(2), FREE, buffer=LARGE).seconds
    assert seconds == pytest.approx(7.0) and longest(virtual(graph, cluster, steps=3)) == pytest.approx(seconds)


def test_a_collective_runs_as_its_messages() -> None:
    builder = Builder(4)
    call = builder.collective("all_reduce", 4000, range(4))
    for rank in range(4):
        builder.join(rank, call)
    graph, cluster = builder.graph(), star("star", 4, RATE / MBIT, 0.0)
    assert longest(virtual(graph, cluster)) == pytest.approx(6.0)


def test_a_graph_of_other_ranks_than_the_case_is_refused() -> None:
    builder = Builder(1)
    builder.compute(0, 1.0)
    graph = builder.graph()

    class Program(GraphProgram):
        @classmethod
        def graph_of(cls, case: OwnCase) -> RankGraph:
            return graph

    fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": 2}
    case = case_from({**fields, "options": {"graph": "a.goal"}, "iterations": 1})
    with pytest.raises(SpecError, match="^a.goal: the graph has 1 ranks, the case has 2$"):
        Program(case, 0, None)  # type: ignore[arg-type]


def test_a_wait_that_no_message_shows_is_refused_with_its_node() -> None:
    builder = Builder(2)
    builder.compute(1, 1.0, [builder.compute(0, 1.0)])
    graph = builder.graph()
    with pytest.raises(SpecError, match="^programs/t.py: rank 1: a.goal: a node of rank 1 waits for rank 0, node 0 "):
        virtual(graph, star("star", 2, RATE / MBIT, 0.0))


def test_messages_of_one_connection_and_tag_are_counted_in_bytes() -> None:
    builder = Builder(2)
    for nbytes in (100, 300):
        builder.send(0, 1, nbytes)
        builder.receive(1, 0, nbytes)
    run = virtual(builder.graph(), star("star", 2, RATE / MBIT, 0.0), steps=2)
    received = [event.nbytes for event in run.events if event.event == "wait" and event.rank == 1]
    assert np.array_equal(received, [100, 300, 100, 300])
