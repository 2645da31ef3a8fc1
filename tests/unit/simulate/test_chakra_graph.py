"""A Chakra trace becomes a graph of rank programs and is written from one; what Chakra cannot express is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scaleproof.rank_programs.graph.expanded import expanded
from scaleproof.rank_programs.graph.goal import read_goal, write_goal
from scaleproof.rank_programs.graph.rank_graph import Builder, Kind, RankGraph
from scaleproof.simulate.chakra.chakra_graph import graph_of, trace_of
from scaleproof.simulate.chakra.chakra_trace import read_trace, write_trace
from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.spec.cluster import star
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY


def mixed() -> RankGraph:
    """Computing, a message and two collectives on four ranks, one of them of two ranks."""
    builder = Builder(4)
    computed = [builder.compute(rank, (rank + 1) * 1e-3) for rank in range(4)]
    every = builder.collective("all_reduce", 4000, range(4))
    joined = [builder.join(rank, every, [computed[rank]]) for rank in range(4)]
    builder.send(0, 3, 500, [joined[0]], tag=2)
    builder.receive(3, 0, 500, [joined[3]], tag=2)
    pair = builder.collective("all_gather", 2000, (1, 2))
    for rank in (1, 2):
        builder.join(rank, pair, [joined[rank]])
    return builder.graph()


def seconds(graph: RankGraph) -> float:
    """On links of 1 MB/s."""
    network = Network(star("star", graph.ranks, 1e6 / MBIT, 0.0))
    return run_graph(graph, network, range(graph.ranks), FREE).seconds


def test_a_graph_is_written_as_a_trace_and_read_again(tmp_path: Path) -> None:
    graph = mixed()
    write_trace(tmp_path, "x", trace_of(graph, "graph"))
    again = graph_of(read_trace(tmp_path), "ring")
    assert len(again) == len(graph) and sorted(again.kind) == sorted(graph.kind)
    assert [(call.operation, call.nbytes, call.members) for call in again.collectives] == [
        (call.operation, call.nbytes, call.members) for call in graph.collectives
    ]
    assert seconds(again) == pytest.approx(seconds(graph), rel=1e-9)


def test_collectives_become_messages_that_take_as_long(tmp_path: Path) -> None:
    graph = mixed()
    messages = expanded(graph)
    assert not len(messages.of_kind(Kind.COLLECTIVE)) and len(messages.of_kind(Kind.SEND)) == 1 + 4 * 6 + 2
    assert seconds(messages) == pytest.approx(seconds(graph), rel=1e-9)
    write_goal(tmp_path / "a.goal", graph)
    assert seconds(read_goal(tmp_path / "a.goal")) == pytest.approx(seconds(graph), rel=1e-6)


def test_a_collective_takes_its_rounds() -> None:
    builder = Builder(2)
    call = builder.collective("all_reduce", 1000, range(2))
    late = [builder.join(rank, call, [builder.compute(rank, float(rank))]) for rank in range(2)]
    network = Network(star("star", 2, 1e6 / MBIT, 0.0))
    ran = run_graph(builder.graph(), network, range(2), FREE)
    assert np.allclose(ran.end[late], 1.0 + 2 * 500e-6)


def test_a_rank_that_misses_a_collective_is_named() -> None:
    builder = Builder(3)
    call = builder.collective("all_reduce", 8, range(3))
    for rank in (0, 2):
        builder.join(rank, call)
    with pytest.raises(SpecError, match="^graph: rank 1 takes part 0 times in all_reduce of 8 B, collective 0; others"):
        seconds(builder.graph())


def test_a_rank_outside_of_a_collective_is_named() -> None:
    builder = Builder(3)
    call = builder.collective("broadcast", 8, (0, 1))
    for rank in range(3):
        builder.join(rank, call)
    with pytest.raises(SpecError, match="rank 2 takes part in broadcast of 8 B, collective 0, to which it does not"):
        seconds(builder.graph())


def test_collectives_in_another_order_are_shown_as_the_circle_of_waiting_ranks() -> None:
    builder = Builder(2)
    calls = [builder.collective("all_reduce", 8, range(2)) for _ in range(2)]
    for rank, order in ((0, calls), (1, calls[::-1])):
        builder.join(rank, order[1], [builder.join(rank, order[0])])
    with pytest.raises(SpecError) as error:
        seconds(builder.graph())
    message = str(error.value)
    assert message.startswith("graph: ranks wait for each other for ever: rank ") and "\n" not in message
    assert "rank 0, node 0 (all_reduce of 8 B, collective 0)" in message and "rank 1, node" in message


def put(builder: Builder) -> None:
    builder.put(0, 1, 8)


def lane(builder: Builder) -> None:
    builder.compute(0, 1.0, lane=2)


def takes_any(builder: Builder) -> None:
    builder.receive(0, ANY, 8)


def start(builder: Builder) -> None:
    builder.wait_for_start(builder.compute(0, 1.0), builder.compute(0, 1.0))


def across(builder: Builder) -> None:
    builder.compute(0, 1.0, [builder.compute(1, 1.0)])


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (put, "rank 0, node 0 (writes 8 B to rank 1): a Chakra trace has no one-sided writes"),
        (lane, "no lanes beside the first"),
        (takes_any, "no receives from any rank"),
        (start, "no waits for the start of another node"),
        (across, "no waits between ranks"),
    ],
)
def test_what_chakra_cannot_express_is_refused(add: Callable[[Builder], None], words: str) -> None:
    builder = Builder(2)
    add(builder)
    with pytest.raises(SpecError) as error:
        trace_of(builder.graph(), "a.goal")
    assert str(error.value).startswith("a.goal: rank 0, node") and words in str(error.value)
