"""Simulates programs `transfer` and `collective`: one call at a time, each after a barrier."""

from __future__ import annotations

import numpy as np

from scaleproof.programs.common import repetitions
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.program import algorithm_of
from scaleproof.simulate.simulated_spans import Prediction, Span
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.spec.cluster import Cluster, slowed
from scaleproof.spec.emulated import shrunk


def sweep(
    case: TransferCase | CollectiveCase, cluster: Cluster, costs: MessageCosts, symmetry: bool = True
) -> Prediction:
    """All sizes of the case, warm-up included. All calls of one size take equally long."""
    network = Network(slowed(cluster, case.dilation, case.shrink), costs.goodput)
    nodes = [rank * case.nodes // case.ranks for rank in range(case.ranks)]
    prediction, at = Prediction(case, start=np.zeros(case.ranks)), 0.0
    for nbytes in case.sizes:
        moved = shrunk(nbytes, case.shrink)
        if isinstance(case, TransferCase):
            seconds, event = np.array([round_trip_s(network, nodes, costs, moved)]), "transfer"
        else:
            call = Call(pattern_of(algorithm_of(case), case.operation, case.ranks), moved, np.zeros(case.ranks))
            reducing = costs.with_footprint(case.ranks * moved)
            Exchange(network, nodes, reducing, symmetry=symmetry, buffer=buffered_nbytes(case)).run([call])
            seconds, event = call.end, case.operation
        for number in range(case.warmup + repetitions(case, nbytes)):
            start = np.full(len(seconds), at)
            prediction.spans.append(Span(event, number, start, start + seconds, moved, number < case.warmup))
            at += float(seconds.max())
    prediction.end = np.full(case.ranks, at)
    return prediction


def round_trip_s(network: Network, nodes: list[int], costs: MessageCosts, nbytes: int) -> float:
    """Time in s of a message from rank 0 to rank 1 and back."""
    size, engine = np.array([float(nbytes)]), Engine(network.capacities)
    routes = [network.route(nodes[source], nodes[destination]) for source, destination in ((0, 1), (1, 0))]
    hops = [costs.hop(len(routes[0]))]
    alpha, beta = float(costs.alpha(size, hops)[0]), float(costs.beta(size, hops)[0])
    there, back = (
        engine.transfer(
            engine.route(route), nbytes, highest=network.most(route, beta), delay=alpha + network.delay_s(route)
        )
        for route in routes
    )
    engine.after(back, there)
    engine.run()
    return engine.now
