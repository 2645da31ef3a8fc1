"""Replays a trace on a cluster: each rank computes in one stream, collectives run as their schedules of messages, sends
and receives as flows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from scaleproof.simulate.chakra.chakra_files import NodeType
from scaleproof.simulate.chakra.chakra_trace import Node, Trace, in_order
from scaleproof.simulate.chakra.matched_collectives import Matching, Shared
from scaleproof.simulate.chakra.message_replay import replay_messages
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.spec.cluster import Cluster
from scaleproof.spec.errors import SpecError


@dataclass(frozen=True, slots=True)
class Replayed:
    """When the step ends on every rank, and how long each of them computed, in s."""

    end: np.ndarray
    computed: np.ndarray
    nodes: int

    @property
    def step_s(self) -> float:
        """Of the slowest rank."""
        return float(self.end.max())

    @property
    def exposed_s(self) -> float:
        """What it does not compute."""
        last = int(self.end.argmax())
        return float(self.end[last] - self.computed[last])


def replay(trace: Trace, cluster: Cluster, costs: MessageCosts, algorithm: str) -> Replayed:
    """On one rank per node. Collectives that follow each other in a group go in the order of the file, one at a time on
    every rank. SpecError where ranks do not fit together."""
    if len(trace.ranks) != cluster.nodes:
        raise SpecError(
            f"the trace has {len(trace.ranks)} ranks, cluster {cluster.name!r} was made for {cluster.nodes} nodes"
        )
    computed = np.array([sum(node.seconds for node in nodes if node.computes) for nodes in trace.ranks])
    count = sum(len(nodes) for nodes in trace.ranks)
    network, nodes = Network(cluster, costs.goodput), list(range(cluster.nodes))
    if any(node.type in (NodeType.COMM_SEND, NodeType.COMM_RECV) for rank in trace.ranks for node in rank):
        return Replayed(replay_messages(trace, network, costs, Matching(trace, algorithm)), computed, count)
    return Replayed(_InCalls(trace, Exchange(network, nodes, costs), Matching(trace, algorithm)).run(), computed, count)


@dataclass(slots=True)
class _Stream:
    """A rank's computing and its calls, each in order; `at`: when it has computed so far."""

    queue: deque[Node]
    calls: deque[Node]
    at: float = 0.0
    done: dict[int, float] = field(default_factory=dict)

    def since(self, node: Node) -> float | None:
        """When all that a node waits for is done; None where it is not."""
        times = [self.done.get(other) for other in node.after]
        return None if None in times else max([0.0, *(time for time in times if time is not None)])


class _InCalls:
    """A trace whose ranks meet in collectives only: everyone computes as far as it can, then the next collectives that
    all their ranks have come to run."""

    def __init__(self, trace: Trace, exchange: Exchange, matching: Matching) -> None:
        self._exchange, self._matching = exchange, matching
        orders = [in_order(nodes) for nodes in trace.ranks]
        self._ranks = [
            _Stream(deque(node for node in order if node.computes), deque(node for node in order if not node.computes))
            for order in orders
        ]

    def run(self) -> np.ndarray:
        """When each rank is done."""
        for stream in self._ranks:
            self._compute(stream)
        while chosen := self._ready():
            calls = [Call(shared.pattern, shared.nbytes, ready) for shared, ready in chosen]
            self._exchange.run(calls)
            for (shared, _), call in zip(chosen, calls, strict=True):
                for rank in shared.nodes:
                    stream = self._ranks[rank]
                    stream.done[stream.calls.popleft().id] = float(call.end[rank])
                    self._compute(stream)
        for rank, stream in enumerate(self._ranks):
            if left := [*stream.queue, *stream.calls]:
                raise SpecError(
                    f"node {left[0].id} of rank {rank} ({left[0].name}) never starts: ranks wait for each other's "
                    "collectives in a circle"
                )
        return np.array([max([stream.at, *stream.done.values()]) for stream in self._ranks])

    def _compute(self, stream: _Stream) -> None:
        while stream.queue and (since := stream.since(stream.queue[0])) is not None:
            node = stream.queue.popleft()
            stream.at = stream.done[node.id] = max(stream.at, since) + node.seconds

    def _ready(self) -> list[tuple[Shared, np.ndarray]]:
        """The next collective of each rank, where all others of its group have come to it too."""
        since = [stream.since(stream.calls[0]) if stream.calls else None for stream in self._ranks]
        found = []
        for rank, stream in enumerate(self._ranks):
            if since[rank] is None:
                continue
            shared = self._matching.of[rank, stream.calls[0].id]
            there = all(
                since[member] is not None and self._ranks[member].calls[0] is node
                for member, node in shared.nodes.items()
            )
            if there and rank == min(shared.nodes):
                times = np.zeros(len(self._ranks))
                for member in shared.nodes:
                    times[member] = since[member]
                found.append((shared, times))
        return found
