"""Replays a trace with sends and receives event by event. Messages and collectives of all ranks share the links."""

from __future__ import annotations

from collections import Counter, deque
from functools import partial

import numpy as np

from scaleproof.simulate.chakra.chakra_files import NodeType
from scaleproof.simulate.chakra.chakra_trace import Node, Trace, in_order
from scaleproof.simulate.chakra.matched_collectives import Matching, Shared
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.fluid_calls import FluidCalls, _Run
from scaleproof.simulate.link_network import Network
from scaleproof.spec.errors import SpecError

Key = tuple[int, int, int]
"""Of a message: source, destination, tag."""


def replay_messages(trace: Trace, network: Network, costs: MessageCosts, matching: Matching) -> np.ndarray:
    """When each rank has finished, in s. A message starts when both the send and the receive are ready."""
    return _Replay(trace, network, costs, matching).run()


class _Replay:
    """`_missing`: number of nodes that each node still waits for; `_behind`: nodes that wait for it; `_stream`:
    computing in order; `_matches`: key and number of the message of each send and receive."""

    def __init__(self, trace: Trace, network: Network, costs: MessageCosts, matching: Matching) -> None:
        self._ranks, self._matching = len(trace.ranks), matching
        self._fluid = FluidCalls(network, np.arange(self._ranks), costs)
        self._orders = [in_order(nodes) for nodes in trace.ranks]
        self._missing = [{node.id: len(set(node.after)) for node in nodes} for nodes in self._orders]
        self._behind: list[dict[int, list[Node]]] = [{} for _ in self._orders]
        for behind, nodes in zip(self._behind, self._orders, strict=True):
            for node in nodes:
                for other in set(node.after):
                    behind.setdefault(other, []).append(node)
        self._stream = [deque(node for node in nodes if node.computes) for nodes in self._orders]
        self._busy = [False] * self._ranks
        self._end, self._unfinished = np.zeros(self._ranks), sum(map(len, self._orders))
        self._matches: dict[tuple[int, int], tuple[Key, int]] = {}
        self._waits: dict[tuple[Key, int], list[tuple[int, Node]]] = {}
        self._runs: dict[int, _Run] = {}
        self._match()

    def _match(self) -> None:
        """Matches the n-th send of a key with its n-th receive."""
        counts: dict[NodeType, Counter[Key]] = {NodeType.COMM_SEND: Counter(), NodeType.COMM_RECV: Counter()}
        for rank, nodes in enumerate(self._orders):
            for node in nodes:
                if node.type in counts:
                    if not 0 <= node.peer < self._ranks:
                        raise SpecError(
                            f"node {node.id} of rank {rank} names rank {node.peer} as its peer; the trace has "
                            f"{self._ranks} ranks"
                        )
                    ends = (rank, node.peer) if node.type is NodeType.COMM_SEND else (node.peer, rank)
                    key: Key = (*ends, node.tag)
                    self._matches[rank, node.id] = key, counts[node.type][key]
                    counts[node.type][key] += 1
        sends, receives = counts[NodeType.COMM_SEND], counts[NodeType.COMM_RECV]
        for key in sorted(sends.keys() | receives.keys()):
            if sends[key] != receives[key]:
                raise SpecError(
                    f"rank {key[0]} sends {sends[key]} messages with tag {key[2]} to rank {key[1]}, which receives "
                    f"{receives[key]}"
                )

    def run(self) -> np.ndarray:
        """When each rank has finished, in s."""
        for rank, nodes in enumerate(self._orders):
            for node in nodes:
                if not node.after:
                    self._fluid.flows.at(0.0, partial(self._start, rank, node))
        self._fluid.flows.run()
        if self._unfinished:
            raise SpecError(f"{self._unfinished} nodes never start: ranks wait for each other's messages in a circle")
        return self._end

    def _start(self, rank: int, node: Node) -> None:
        """Everything that the node waits for has finished."""
        if node.computes:
            self._missing[rank][node.id] = 0
            self._next(rank)
        elif node.type is NodeType.COMM_COLL:
            self._enter(rank, node, self._matching.of[rank, node.id])
        else:
            self._meet(rank, node)

    def _next(self, rank: int) -> None:
        """The stream starts its next piece if that is ready."""
        stream = self._stream[rank]
        if not self._busy[rank] and stream and not self._missing[rank][stream[0].id]:
            node, self._busy[rank] = stream.popleft(), True
            self._fluid.flows.at(self._fluid.flows.now + node.seconds, partial(self._computed, rank, node))

    def _computed(self, rank: int, node: Node) -> None:
        self._busy[rank] = False
        self._finish(rank, node)
        self._next(rank)

    def _enter(self, rank: int, node: Node, shared: Shared) -> None:
        if id(shared) not in self._runs:
            self._runs[id(shared)] = self._fluid.opened(Call(shared.pattern, shared.nbytes, np.zeros(self._ranks)))
        self._runs[id(shared)].enter(rank, partial(self._finish, rank, node))

    def _meet(self, rank: int, node: Node) -> None:
        ends = self._waits.setdefault(self._matches[rank, node.id], [])
        ends.append((rank, node))
        if len(ends) == 2:
            (source, destination, _), _ = self._matches[rank, node.id]
            self._fluid.message(
                source, destination, float(max(end.nbytes for _, end in ends)), partial(self._arrived, ends)
            )

    def _arrived(self, ends: list[tuple[int, Node]]) -> None:
        for rank, node in ends:
            self._finish(rank, node)

    def _finish(self, rank: int, node: Node) -> None:
        self._unfinished -= 1
        self._end[rank] = max(self._end[rank], self._fluid.flows.now)
        for other in self._behind[rank].get(node.id, ()):
            self._missing[rank][other.id] -= 1
            if not self._missing[rank][other.id]:
                self._start(rank, other)
