"""Replays a trace on a cluster: each rank computes in one stream, collectives run as their schedules of messages, sends
and receives as flows."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scaleproof.simulate.chakra.messages import replay_messages
from scaleproof.simulate.chakra.trace import OPERATIONS, Node, Trace, in_order
from scaleproof.simulate.chakra.wire import Collective, Type
from scaleproof.simulate.exchange import Call, Exchange
from scaleproof.simulate.model import MessageCosts
from scaleproof.simulate.network import Network
from scaleproof.simulate.schedules import Pattern, grouped, pattern_of
from scaleproof.spec.cluster import Cluster
from scaleproof.spec.errors import SpecError

BARRIER_BYTES = 4
"""A barrier runs as an all-reduce of one value."""


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
    if any(node.type in (Type.COMM_SEND, Type.COMM_RECV) for rank in trace.ranks for node in rank):
        return Replayed(replay_messages(trace, network, costs, Matching(trace, algorithm)), computed, count)
    return Replayed(_InCalls(trace, Exchange(network, nodes, costs), Matching(trace, algorithm)).run(), computed, count)


@dataclass(slots=True)
class Shared:
    """One collective of several ranks: the node of each, the schedule, and what it moves."""

    nodes: dict[int, Node]
    pattern: Pattern
    nbytes: float


class Matching:
    """The n-th collective of a group on one rank is the n-th on all of its ranks."""

    def __init__(self, trace: Trace, algorithm: str) -> None:
        self._ranks, self._groups, self._algorithm = len(trace.ranks), trace.groups, algorithm
        self._patterns: dict[tuple[str, tuple[int, ...]], Pattern] = {}
        lists: dict[str | None, dict[int, list[Node]]] = {}
        for rank, nodes in enumerate(trace.ranks):
            for node in in_order(nodes):
                if node.type is Type.COMM_COLL:
                    lists.setdefault(self._group(node), {}).setdefault(rank, []).append(node)
        self.of: dict[tuple[int, int], Shared] = {}
        """By rank and id of a node."""
        for name, by_rank in lists.items():
            for shared in self._matched(name, by_rank):
                for rank, node in shared.nodes.items():
                    self.of[rank, node.id] = shared

    def _group(self, node: Node) -> str | None:
        return node.group if node.group in self._groups else None

    def _matched(self, name: str | None, by_rank: Mapping[int, list[Node]]) -> list[Shared]:
        members = self._groups[name] if name is not None else tuple(range(self._ranks))
        words = "all ranks" if name is None else f"group {name!r}"
        outside = next((rank for rank in by_rank if rank not in members), None)
        if outside is not None:
            raise SpecError(f"rank {outside} has a collective of {words}, to which it does not belong")
        counts = {rank: len(by_rank.get(rank, ())) for rank in members}
        if len(set(counts.values())) > 1:
            few, many = min(counts, key=lambda rank: counts[rank]), max(counts, key=lambda rank: counts[rank])
            raise SpecError(f"collectives of {words}: rank {few} has {counts[few]}, rank {many} has {counts[many]}")
        return [
            self._shared(words, members, {rank: by_rank[rank][number] for rank in members})
            for number in range(counts[members[0]])
        ]

    def _shared(self, words: str, members: tuple[int, ...], nodes: dict[int, Node]) -> Shared:
        first = nodes[members[0]]
        for rank, node in nodes.items():
            if (node.operation, node.nbytes) != (first.operation, first.nbytes):
                said = [
                    f"{one.operation.name} of {one.nbytes} bytes (rank {at})"
                    for at, one in ((members[0], first), (rank, node))
                    if one.operation is not None
                ]
                raise SpecError(f"a collective of {words} is {' and '.join(said)} at once")
        assert first.operation is not None
        if first.operation is Collective.BARRIER:
            return Shared(nodes, self._pattern("all_reduce", members), BARRIER_BYTES)
        if first.operation not in OPERATIONS:
            known = ", ".join(operation.name for operation in OPERATIONS)
            raise SpecError(
                f"node {first.id} of rank {members[0]}: {first.operation.name} is not simulated; {known} and BARRIER are"
            )
        parts = len(members) if first.operation is Collective.ALL_GATHER else 1
        return Shared(nodes, self._pattern(OPERATIONS[first.operation], members), float(first.nbytes * parts))

    def _pattern(self, operation: str, members: tuple[int, ...]) -> Pattern:
        if (operation, members) not in self._patterns:
            whole = pattern_of(self._algorithm, operation, len(members))  # type: ignore[arg-type]
            self._patterns[operation, members] = (
                whole if len(members) == self._ranks else grouped(whole, (members,), self._ranks)
            )
        return self._patterns[operation, members]


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
                    f"node {left[0].id} of rank {rank} ({left[0].name}) never starts: ranks wait for each other's collectives in a circle"
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
