"""Replicas that are not equal, or whose links are not, are refused in one line; times of all ranks come back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scaleproof.cli import main
from scaleproof.rank_programs.graph.goal import write_goal
from scaleproof.rank_programs.graph.rank_graph import Builder, RankGraph
from scaleproof.rank_programs.graph.replicas import neighbours, replicas_of
from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.rank_graph.folded_run import run_folded
from scaleproof.simulate.rank_graph.graph_run import Ran
from scaleproof.simulate.rank_graph.pipeline_graph import on_torus, pipelines
from scaleproof.spec.cluster import Cluster, Link, node_name, star
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY

RATE = 1000.0
"""Bytes/s of each link."""


def pairs(count: int = 3, late_s: float = 0.0, late_nbytes: float = 500.0, source: int | None = None) -> RankGraph:
    """In each pair of ranks the first computes and sends to the second. What of the last pair may differ."""
    builder = Builder(2 * count)
    for pair in range(count):
        first, last = 2 * pair, pair == count - 1
        computed = builder.compute(first, 1.0 + late_s * last)
        nbytes = late_nbytes if last else 500.0
        builder.send(first, first + 1, nbytes, [computed])
        builder.receive(first + 1, first if source is None else source, nbytes)
    return builder.graph()


def folded(graph: RankGraph, cluster: Cluster | None = None, count: int = 3) -> Ran:
    network = Network(cluster or star("star", graph.ranks, RATE / MBIT, 0.0))
    return run_folded(graph, neighbours(graph.ranks, count), network, range(graph.ranks), FREE)


def refused(graph: RankGraph, cluster: Cluster | None = None, count: int = 3) -> str:
    with pytest.raises(SpecError) as error:
        folded(graph, cluster, count)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_all_nodes_get_the_times_of_the_replica_that_was_run() -> None:
    ran = folded(pairs())
    assert ran.end.tolist() == [1.0, 1.5, 1.5] * 3 and ran.start.tolist() == [0.0, 1.0, 0.0] * 3


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (pairs(late_s=0.5), "its replicas are not equal: rank 2, node 0 (computes for 1 s), but rank 4, node 0"),
        (pairs(late_nbytes=400.0), "rank 2, node 1 (sends 500 B to rank 3, tag 0), but rank 4, node 1 (sends 400 B"),
        (pairs(source=ANY), "rank 1, node 0 (receives from any rank, tag 0): which message it takes may differ"),
    ],
)
def test_replicas_that_differ_are_refused_with_rank_and_operation(graph: RankGraph, words: str) -> None:
    assert words in refused(graph)


def test_a_wait_and_a_node_that_only_one_replica_has_are_refused() -> None:
    builder = Builder(2)
    first, second = ([builder.compute(rank, 1.0), builder.compute(rank, 1.0, lane=1)] for rank in (0, 1))
    builder.wait(first[1], first[0])
    waits = "rank 0, node 1 (computes for 1 s) waits for rank 0, node 0 (computes for 1 s); rank 1, node 1"
    assert waits in refused(builder.graph(), count=2)
    builder.wait(second[1], second[0])
    assert folded(builder.graph(), count=2).end.tolist() == [1.0, 2.0, 1.0, 2.0]
    builder.compute(1, 1.0)
    assert "rank 0 has 2 nodes, rank 1 has 3" in refused(builder.graph(), count=2)


def test_links_that_differ_are_refused_and_a_link_that_all_share_is_shared() -> None:
    slow = star("star", 6, RATE / MBIT, 0.0).links
    unequal = Cluster("x", 6, ("switch",), (*slow[:-1], Link(slow[-1].ends, slow[-1].mbit, 1.0)))
    assert "cannot be folded: the links from rank 2 to rank 3 and rank 4 to rank 5 differ" in refused(pairs(), unequal)
    graph = pipelines([1e-3], on_torus(1, (4,)), 1, 0.0, [1e6])
    with pytest.raises(SpecError, match="the links from rank 0 to rank 1 and rank 1 to rank 2 differ"):
        run_folded(graph, on_torus(1, (4,)), Network(star("star", 2, 1e3, 0.0)), [0, 0, 1, 1], FREE)
    links = [Link((node_name(node), "ab"[node % 2]), RATE / MBIT, 0.0) for node in range(6)]
    shared = Cluster("y", 6, ("a", "b"), (*links, Link(("a", "b"), RATE / MBIT, 0.0)))
    assert np.allclose(folded(pairs(), shared).end, [1.0, 2.5, 2.5] * 3), "three messages share a link"


def test_a_collective_whose_algorithm_treats_replicas_differently_is_refused() -> None:
    graph = pipelines([1e-3], on_torus(1, (4,)), 1, 0.0, [1e6], "halving_doubling")
    network = Network(star("star", 4, 1000.0, 0.0))
    with pytest.raises(SpecError, match="all_reduce by halving_doubling treats replicas on a torus of 4 differently"):
        run_folded(graph, on_torus(1, (4,)), network, range(4), FREE)
    assert run_folded(graph, on_torus(1, (2, 2)), network, range(4), FREE).seconds > 3e-3
    tree = pipelines([1e-3], on_torus(1, (4,)), 1, 0.0, [1e6], "tree")
    with pytest.raises(SpecError, match="all_reduce by tree treats replicas on a torus of 2 x 2 differently"):
        run_folded(tree, on_torus(1, (2, 2)), network, range(4), FREE)


def test_ranks_that_wait_for_ever_are_named_as_in_the_whole() -> None:
    builder = Builder(4)
    for rank in range(4):
        builder.receive(rank, rank ^ 1, 500, after=[builder.send(rank, rank ^ 1, 500)])
    assert "ranks wait for each other for ever: rank 0, node 0 (sends 500 B" in refused(builder.graph(), count=2)


@pytest.mark.parametrize(
    ("rows", "shape", "words"),
    [
        ([[0, 1], [2]], (), "replicas have equally many ranks"),
        ([[0, 1], [1, 2]], (), "every rank from 0 to 3 is in one replica"),
        ([[0], [1], [2]], (2, 2), "3 replicas do not fill a torus of 2 x 2"),
    ],
)
def test_replicas_that_are_none_are_refused(rows: list[list[int]], shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        replicas_of(rows, shape)


def test_goal_replay_folds_what_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.goal"
    write_goal(path, pairs())
    command = ["goal", "replay", str(path), "--fabric", "1g", "--results", str(tmp_path)]
    found = []
    for more in ([], ["--replicas", "3"]):
        assert main([*command, *more, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["seconds"])
    assert found[1] == pytest.approx(found[0], rel=1e-9)
    assert main([*command, "--replicas", "4"]) == 2
    assert "--replicas 4: 6 ranks are no 4 equal replicas" in capsys.readouterr().err
