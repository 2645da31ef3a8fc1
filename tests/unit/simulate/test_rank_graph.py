"""Graphs of rank programs: messages meet their receives, waits and lanes are kept, and what cannot run says why."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.rank_programs.graph.rank_graph import Builder, RankGraph
from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.engine.tables import ANY
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.rank_graph.graph_run import Ran, run_graph
from scaleproof.spec.cluster import star
from scaleproof.spec.errors import SpecError

RATE = 1000.0
"""Bytes/s of each link."""


def ran(graph: RankGraph, buffer: float = 0.0) -> Ran:
    """On a star, with a node for each rank."""
    network = Network(star("star", graph.ranks, RATE / MBIT, 0.0))
    return run_graph(graph, network, range(graph.ranks), FREE, buffer=buffer)


def refused(graph: RankGraph, buffer: float = 0.0) -> str:
    with pytest.raises(SpecError) as error:
        ran(graph, buffer)
    message = str(error.value)
    assert message.startswith("graph: ") and "\n" not in message
    return message


def test_a_message_larger_than_the_buffer_leaves_when_its_receive_has_started() -> None:
    builder = Builder(2)
    sent = builder.send(0, 1, 500)
    late = builder.receive(1, 0, 500, after=[builder.compute(1, 2.0)])
    times = ran(builder.graph())
    assert times.end[[sent, late]].tolist() == [2.5, 2.5]


def test_a_message_that_fits_the_buffer_leaves_at_once_and_its_sender_goes_on() -> None:
    builder = Builder(2)
    sent = builder.send(0, 1, 500)
    late = builder.receive(1, 0, 500, after=[builder.compute(1, 2.0)])
    times = ran(builder.graph(), buffer=500)
    assert times.end[[sent, late]].tolist() == [0.0, 2.0]


def test_messages_of_one_connection_arrive_one_after_the_other_and_fill_the_buffer_together() -> None:
    builder = Builder(2)
    sends = [builder.send(0, 1, 400, tag=tag) for tag in range(3)]
    receives = [builder.receive(1, 0, 400, tag=tag) for tag in range(3)]
    times = ran(builder.graph(), buffer=900)
    assert np.allclose(times.end[receives], [0.4, 0.8, 1.2])
    assert np.allclose(times.end[sends], [0.0, 0.0, 1.2]), "the third does not fit beside two others"


def test_messages_of_different_ranks_share_the_receivers_link() -> None:
    builder = Builder(3)
    for rank in (1, 2):
        builder.send(rank, 0, 500)
    receives = [builder.receive(0, rank, 500) for rank in (1, 2)]
    assert np.allclose(ran(builder.graph()).end[receives], 1.0)


def test_the_earliest_receive_takes_a_message_and_any_takes_from_whoever_comes_first() -> None:
    builder = Builder(3)
    builder.send(1, 0, 100, after=[builder.compute(1, 1.0)])
    builder.send(2, 0, 100)
    first = builder.receive(0, ANY, 100)
    second = builder.receive(0, ANY, 100, after=[first])
    times = ran(builder.graph())
    assert np.allclose(times.end[[first, second]], [0.1, 1.1])


def test_a_receive_of_one_source_leaves_messages_of_others() -> None:
    builder = Builder(3)
    for rank in (1, 2):
        builder.send(rank, 0, 100, after=[builder.compute(rank, float(rank))])
    of_two, of_any = builder.receive(0, 2, 100), builder.receive(0, ANY, 100)
    times = ran(builder.graph(), buffer=100)
    assert np.allclose(times.end[[of_two, of_any]], [2.1, 1.1])


def test_a_put_needs_nobody_and_what_polls_for_it_goes_on_when_it_has_arrived() -> None:
    builder = Builder(2)
    put = builder.put(0, 1, 500, after=[builder.compute(0, 1.0)])
    seen = builder.compute(1, 1.0, after=[put])
    assert ran(builder.graph()).end[[put, seen]].tolist() == [1.5, 2.5]


def test_lanes_of_a_rank_work_beside_each_other_and_each_does_one_thing_at_a_time() -> None:
    builder = Builder(1)
    nodes = [builder.compute(0, 1.0, lane=lane) for lane in (0, 0, 1)]
    assert ran(builder.graph()).end[nodes].tolist() == [1.0, 2.0, 1.0]


def test_a_node_may_wait_for_the_start_of_another() -> None:
    builder = Builder(1)
    long = builder.compute(0, 5.0, after=[builder.compute(0, 1.0)])
    other = builder.compute(0, 1.0, lane=1)
    builder.wait_for_start(other, long)
    assert ran(builder.graph()).end[[long, other]].tolist() == [6.0, 2.0]


def test_a_collective_of_some_ranks_has_their_places_in_the_order_of_its_members() -> None:
    """Rank 2 sends to 0 and to 1; rank 0, which is still busy on its lane, holds up nobody else."""
    builder = Builder(4)
    call = builder.collective("broadcast", 500, [2, 0, 1], "tree")
    builder.compute(0, 4.0)
    late = builder.join(0, call, lane=0)
    soon, root = builder.join(1, call), builder.join(2, call, after=[builder.compute(2, 1.0)])
    times = ran(builder.graph(), buffer=500)
    assert times.start[[late, soon, root]].tolist() == [4.0, 0.0, 1.0]
    assert times.end[[late, soon, root]].tolist() == [4.0, 2.0, 1.0]


def test_a_rank_sends_to_itself_without_a_link() -> None:
    builder = Builder(1)
    builder.send(0, 0, 500)
    builder.receive(0, 0, 500)
    assert ran(builder.graph()).seconds == 0


@pytest.mark.parametrize(("source", "words"), [(0, "rank 0 sends no such message"), (ANY, "is sent 0 messages")])
def test_a_receive_without_a_message_is_refused(source: int, words: str) -> None:
    builder = Builder(2)
    builder.receive(1, source, 8, tag=7)
    message = refused(builder.graph())
    assert words in message and "rank 1" in message and "7" in message


def test_a_message_without_a_receive_is_refused() -> None:
    builder = Builder(2)
    builder.send(0, 1, 8, tag=3)
    assert "rank 1 is sent 1 messages with tag 3 that no receive of its source takes" in refused(builder.graph())


def test_a_circle_is_refused_with_its_nodes() -> None:
    builder = Builder(1)
    one = builder.compute(0, 1.0)
    builder.wait(one, builder.compute(0, 2.0, after=[one]))
    assert "wait for each other in a circle: rank 0, node" in refused(builder.graph())


def test_ranks_that_both_send_first_wait_for_ever_unless_a_buffer_takes_the_messages() -> None:
    builder = Builder(2)
    for rank in (0, 1):
        builder.receive(rank, 1 - rank, 500, after=[builder.send(rank, 1 - rank, 500)])
    graph = builder.graph()
    message = refused(graph)
    assert "ranks wait for each other for ever" in message
    assert "rank 0, node 0 (sends 500 B to rank 1, tag 0)" in message and "rank 1, node" in message
    assert ran(graph, buffer=500).seconds == pytest.approx(0.5)


def test_a_peer_that_is_no_rank_is_refused() -> None:
    builder = Builder(2)
    builder.send(0, 5, 8)
    assert "rank 0, node 0 (sends 8 B to rank 5, tag 0): there are 2 ranks" in refused(builder.graph())
