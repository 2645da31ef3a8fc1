"""Messages take time of a core on both sides: alone, a message takes what alpha and beta say; many at one server share
its threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import FREE, MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.server_threads import Threads
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.thread_times import ProcessorTime
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.spec.cluster import cluster_of, star
from tests.unit.simulate.test_simulator import case_of, profile_of
from tests.unit.simulate.test_training_on_engine import assert_same

ALPHA, BETA, SEND_S, RECEIVE_S = 100e-6, 1e-10, 10e-6, 20e-6
LINK = 1e9
"""Bytes/s of a link."""
COSTS = MessageCosts(
    (Segment(None, ALPHA, BETA),), 0.0, sending=ProcessorTime(SEND_S), receiving=ProcessorTime(RECEIVE_S, 1e-11)
)


def incast_s(workers: int, nbytes: float, costs: MessageCosts) -> float:
    """Every worker sends a message to rank 0 at once."""
    network = Network(star("star", workers + 1, 8 * LINK / 1e6, 0.0))
    engine = Engine(Threads.capacities(network, costs, workers + 1))
    threads, sources = Threads(engine, network, costs), np.arange(1, workers + 1)
    moved = [threads.move(worker, 0, (worker, 0), nbytes) for worker in sources.tolist()]
    boxes = engine.boxes(workers)
    engine.send(
        boxes,
        sources,
        np.array([each.route for each in moved]),
        nbytes,
        count=workers,
        highest=np.array([each.highest for each in moved]),
        delay=np.array([each.delay for each in moved]),
    )
    engine.receive(boxes, sources, count=workers)
    engine.run()
    return engine.now


@pytest.mark.parametrize("nbytes", [1.0, 1e3, 2e4, 1e5, 1e7])
def test_a_message_alone_takes_what_alpha_and_beta_say(nbytes: float) -> None:
    assert incast_s(1, nbytes, COSTS) == pytest.approx(ALPHA + nbytes * max(BETA, 1 / LINK))


@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (2, 1), (8, 1), (64, 1), (8, 4), (64, 4), (3, 4)])
def test_small_messages_of_many_workers_wait_for_the_threads_of_their_server(workers: int, threads: int) -> None:
    nbytes = 100.0
    each, wire = RECEIVE_S + 1e-11 * nbytes, nbytes / LINK
    busy = max(workers / threads, 1.0) * each
    assert incast_s(workers, nbytes, replace(COSTS, threads=threads)) == pytest.approx(ALPHA + wire - each + busy)


def test_large_messages_of_many_workers_wait_for_the_link_of_their_server() -> None:
    assert incast_s(8, 1e7, COSTS) == pytest.approx(ALPHA + 8e7 / LINK)


def test_a_server_takes_its_threads_for_every_tensor_of_every_worker() -> None:
    case = case_of(**{"strategy": "parameter_server", "strategy.servers": 1, "ranks": 8})
    profile, cluster = profile_of(case), cluster_of(case)
    tensors = len(profile.layers)
    slow = replace(FREE, sending=ProcessorTime(1e-3), receiving=ProcessorTime(3e-3))
    without, one, four = (
        simulate(case, profile, cluster, costs).step_s for costs in (FREE, slow, replace(slow, threads=4))
    )
    assert one >= tensors * 7 * 4e-3 > without, "all are received and sent by one thread"
    assert without < four < 0.5 * one


@pytest.mark.parametrize("collective", ["ring", "halving_doubling"])
def test_ranks_of_a_collective_have_it_in_alpha_and_beta(collective: str) -> None:
    case = case_of(collective=collective)
    profile, cluster = profile_of(case), cluster_of(case)
    plain = replace(COSTS, sending=ProcessorTime(), receiving=ProcessorTime())
    for run in (simulate, simulate_each_rank):
        assert_same(run(case, profile, cluster, COSTS), run(case, profile, cluster, plain))
