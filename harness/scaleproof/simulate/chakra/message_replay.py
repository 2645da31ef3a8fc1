"""Replays a trace with sends and receives in the event engine. Messages and collectives of all ranks share the
links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.chakra.chakra_files import NodeType
from scaleproof.simulate.chakra.chakra_trace import Node, Trace, in_order
from scaleproof.simulate.chakra.matched_collectives import Matching
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.link_network import Network
from scaleproof.spec.errors import SpecError

Key = tuple[int, int, int]
"""Of a message: source, destination, tag."""
Place = tuple[int, int]
"""Rank and id of a node."""


def replay_messages(
    trace: Trace, network: Network, costs: MessageCosts, matching: Matching, buffer: float
) -> np.ndarray:
    """When each rank has finished, in s. A message of the trace starts when both the send and the receive are ready.
    `buffer`: bytes of a collective's message that a connection takes before its receiver reads. Raises SpecError for a
    trace whose messages or ranks do not fit each other."""
    return _Replay(trace, network, costs, matching, buffer).run()


class _Replay:
    def __init__(self, trace: Trace, network: Network, costs: MessageCosts, matching: Matching, buffer: float) -> None:
        self._buffer = buffer
        self._orders, self._network, self._costs, self._matching = (
            [in_order(nodes) for nodes in trace.ranks],
            network,
            costs,
            matching,
        )
        self._engine = Engine(network.capacities)
        self._tasks: dict[Place, int] = {}

    def run(self) -> np.ndarray:
        """When each rank has finished, in s."""
        self._add_computing()
        self._add_messages()
        self._add_collectives()
        edges = [
            (self._tasks[rank, other], self._tasks[rank, node.id])
            for rank, nodes in enumerate(self._orders)
            for node in nodes
            for other in set(node.after)
        ]
        self._wait(edges)
        self._engine.run()
        places = list(self._tasks)
        ends = self._engine.end[np.array([self._tasks[place] for place in places], np.int64)]
        if unfinished := int(np.isnan(ends).sum()):
            raise SpecError(f"{unfinished} nodes never start: ranks wait for each other's messages in a circle")
        last = np.zeros(len(self._orders))
        np.maximum.at(last, [rank for rank, _ in places], ends)
        return last

    def _add_computing(self) -> None:
        """Each rank's computing, in order."""
        for rank, nodes in enumerate(self._orders):
            computing = [node for node in nodes if node.computes]
            tasks = self._engine.work([node.seconds for node in computing], count=len(computing))
            self._tasks |= {(rank, node.id): task for node, task in zip(computing, tasks.tolist(), strict=True)}
            self._engine.after(tasks[1:], tasks[:-1])

    def _add_messages(self) -> None:
        pairs = self._pairs()
        boxes = self._engine.boxes(len(pairs))
        nbytes = np.array([float(max(send.nbytes, receive.nbytes)) for _, send, receive in pairs])
        links = [self._network.route(source, destination) for (source, destination, _), _, _ in pairs]
        beta = self._costs.beta(nbytes).tolist()
        sources = np.array([source for (source, _, _), _, _ in pairs], np.int64)
        sends = self._engine.send(
            boxes,
            sources,
            np.array([self._engine.route(route) for route in links], np.int64),
            nbytes,
            count=len(pairs),
            highest=np.array([self._network.most(*each) for each in zip(links, beta, strict=True)]),
            delay=self._costs.alpha(nbytes) + np.array([self._network.delay_s(route) for route in links]),
        )
        receives = self._engine.receive(boxes, sources, count=len(pairs))
        for (key, send, receive), sent, received in zip(pairs, sends.tolist(), receives.tolist(), strict=True):
            self._tasks[key[0], send.id], self._tasks[key[1], receive.id] = sent, received

    def _pairs(self) -> list[tuple[Key, Node, Node]]:
        """The n-th send of a key with its n-th receive."""
        sends, receives = dict[Key, list[Node]](), dict[Key, list[Node]]()
        for rank, nodes in enumerate(self._orders):
            for node in nodes:
                if node.type not in (NodeType.COMM_SEND, NodeType.COMM_RECV):
                    continue
                if not 0 <= node.peer < len(self._orders):
                    raise SpecError(
                        f"node {node.id} of rank {rank} names rank {node.peer} as its peer; the trace has "
                        f"{len(self._orders)} ranks"
                    )
                if node.type is NodeType.COMM_SEND:
                    sends.setdefault((rank, node.peer, node.tag), []).append(node)
                else:
                    receives.setdefault((node.peer, rank, node.tag), []).append(node)
        for key in sorted(sends.keys() | receives.keys()):
            sent, received = len(sends.get(key, ())), len(receives.get(key, ()))
            if sent != received:
                raise SpecError(
                    f"rank {key[0]} sends {sent} messages with tag {key[2]} to rank {key[1]}, which receives {received}"
                )
        return [(key, *pair) for key, nodes in sends.items() for pair in zip(nodes, receives[key], strict=True)]

    def _add_collectives(self) -> None:
        ranks = len(self._orders)
        schedules = CallSchedules(self._engine, self._network, range(ranks), self._costs, self._buffer)
        for shared in {id(shared): shared for shared in self._matching.of.values()}.values():
            tasks = self._engine.call(schedules.of(shared.pattern, shared.nbytes), np.full(ranks, NONE)).tolist()
            self._tasks |= {(rank, node.id): tasks[rank] for rank, node in shared.nodes.items()}

    def _wait(self, edges: Sequence[tuple[int, int]]) -> None:
        array = np.array(edges, np.int64).reshape(-1, 2)
        self._engine.after(array[:, 1].copy(), array[:, 0].copy())
