"""Replays a trace on a cluster: each rank computes in one stream, collectives run as schedules of messages, sends and
receives as flows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import networkx
import numpy as np

from scaleproof.simulate.chakra.chakra_files import NodeType
from scaleproof.simulate.chakra.chakra_graph import graph_of
from scaleproof.simulate.chakra.chakra_trace import Node, Trace, in_order
from scaleproof.simulate.chakra.matched_collectives import Matching, Shared
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.spec.cluster import Cluster
from scaleproof.spec.errors import SpecError

SHOWN = 6
"""Most ranks of a circle that a message names."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """When the step ends on every rank, and how long each of them computed, in s."""

    end: np.ndarray
    computed: np.ndarray
    nodes: int

    @property
    def step_s(self) -> float:
        """Step time of the slowest rank."""
        return float(self.end.max())

    @property
    def exposed_s(self) -> float:
        """Time in which the slowest rank does not compute."""
        last = int(self.end.argmax())
        return float(self.end[last] - self.computed[last])


def replay(
    trace: Trace, cluster: Cluster, costs: MessageCosts, algorithm: str, buffer: float = 0.0, name: str = "trace"
) -> Replayed:
    """Replays a trace with one rank per node. Collectives of a group run in the order of the file, one at a time on
    every rank. `buffer`: bytes that a connection takes before its receiver reads. Raises SpecError if the ranks do not
    match."""
    if len(trace.ranks) != cluster.nodes:
        raise SpecError(
            f"{name}: the trace has {len(trace.ranks)} ranks, but cluster {cluster.name!r} has {cluster.nodes} nodes"
        )
    computed = np.array([sum(node.seconds for node in nodes if node.computes) for nodes in trace.ranks])
    count = sum(len(nodes) for nodes in trace.ranks)
    network, nodes = Network(cluster, costs.goodput), list(range(cluster.nodes))
    if any(node.type in (NodeType.COMM_SEND, NodeType.COMM_RECV) for rank in trace.ranks for node in rank):
        return Replayed(_with_messages(trace, network, costs, algorithm, buffer, name), computed, count)
    exchange = Exchange(network, nodes, costs, buffer=buffer)
    try:
        return Replayed(_InCalls(trace, exchange, Matching(trace, algorithm)).run(), computed, count)
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from None


def _with_messages(
    trace: Trace, network: Network, costs: MessageCosts, algorithm: str, buffer: float, name: str
) -> np.ndarray:
    """Replays a trace with sends and receives as a graph of rank programs. Its messages start when both ends are ready;
    those of collectives are buffered."""
    graph = graph_of(trace, algorithm, name)
    ran = run_graph(graph, network, range(graph.ranks), costs, collective_buffer=buffer, name=name)
    last = np.zeros(graph.ranks)
    np.maximum.at(last, graph.rank, ran.end)
    return last


@dataclass(slots=True)
class _Stream:
    """Computing and calls of one rank, each in order. `at`: when its last computing ended; `finished`: end times by
    node id."""

    queue: deque[Node]
    calls: deque[Node]
    at: float = 0.0
    finished: dict[int, float] = field(default_factory=dict)

    def since(self, node: Node) -> float | None:
        """When everything that a node waits for had finished; None if it has not."""
        times = [self.finished.get(other) for other in node.after]
        return None if None in times else max([0.0, *(time for time in times if time is not None)])


class _InCalls:
    """Replays a trace whose ranks communicate by collectives only: every rank computes as far as it can, then the
    collectives run that all their ranks have reached."""

    def __init__(self, trace: Trace, exchange: Exchange, matching: Matching) -> None:
        self._exchange, self._matching = exchange, matching
        ordered = [in_order(nodes) for nodes in trace.ranks]
        self._ranks = [
            _Stream(deque(node for node in order if node.computes), deque(node for node in order if not node.computes))
            for order in ordered
        ]

    def run(self) -> np.ndarray:
        """When each rank has finished, in s."""
        for stream in self._ranks:
            self._compute(stream)
        while chosen := self._ready():
            calls = [Call(shared.pattern, shared.nbytes, ready) for shared, ready in chosen]
            self._exchange.run(calls)
            for (shared, _), call in zip(chosen, calls, strict=True):
                for rank in shared.nodes:
                    stream = self._ranks[rank]
                    stream.finished[stream.calls.popleft().id] = float(call.end[rank])
                    self._compute(stream)
        if any(stream.calls for stream in self._ranks):
            raise SpecError(f"ranks wait for each other for ever: {self._circle()}")
        return np.array([max([stream.at, *stream.finished.values()]) for stream in self._ranks])

    def _circle(self) -> str:
        """Ranks that wait at a collective for others that wait at another one."""
        at = {rank: stream.calls[0] for rank, stream in enumerate(self._ranks) if stream.calls}
        edges = [
            (rank, member)
            for rank, node in at.items()
            for member, other in self._matching.of[rank, node.id].nodes.items()
            if at.get(member) is not other
        ]
        circle = networkx.find_cycle(networkx.DiGraph(edges))
        named = [f"rank {rank}, node {at[rank].id} ({at[rank].name})" for rank, _ in circle]
        return "; then ".join(named[:SHOWN]) + (f", and {len(named) - SHOWN} more" if len(named) > SHOWN else "")

    def _compute(self, stream: _Stream) -> None:
        while stream.queue and (since := stream.since(stream.queue[0])) is not None:
            node = stream.queue.popleft()
            stream.at = stream.finished[node.id] = max(stream.at, since) + node.seconds

    def _ready(self) -> list[tuple[Shared, np.ndarray]]:
        """Collectives that all ranks of their group have reached, with the time at which each rank reached them."""
        since = [stream.since(stream.calls[0]) if stream.calls else None for stream in self._ranks]
        ready = []
        for rank, stream in enumerate(self._ranks):
            if since[rank] is None:
                continue
            shared = self._matching.of[rank, stream.calls[0].id]
            complete = all(
                since[member] is not None and self._ranks[member].calls[0] is node
                for member, node in shared.nodes.items()
            )
            if complete and rank == min(shared.nodes):
                times = np.zeros(len(self._ranks))
                for member in shared.nodes:
                    times[member] = since[member]
                ready.append((shared, times))
        return ready
