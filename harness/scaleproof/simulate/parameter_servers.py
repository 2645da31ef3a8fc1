"""Simulates parameter servers (strategies/parameter_server.py): every worker sends each tensor to its server, which
sums the gradients, updates the tensor and sends it back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.fluid_flows import Flows


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter's bytes and the rank that serves it."""

    nbytes: float
    owner: int


Served = tuple[dict[int, np.ndarray], np.ndarray, list[tuple[np.ndarray, np.ndarray]]]


def serve(
    exchange: Exchange, tensors: Sequence[Tensor], pushed: Mapping[int, np.ndarray], finish: np.ndarray, update_s: float
) -> Served:
    """When every rank has each tensor's new value, when every rank has finished, and when the updates start and end
    (the n-th updates of all servers together), in s.

    `pushed`: when each rank has the gradient of each tensor; `finish`: when each rank's backward pass ends, which its
    own sums and updates wait for. Messages between two ranks are sent one after the other, messages between different
    pairs at the same time."""
    return _Serving(exchange, tensors, pushed, finish, update_s).run()


class _Serving:
    def __init__(
        self,
        exchange: Exchange,
        tensors: Sequence[Tensor],
        pushed: Mapping[int, np.ndarray],
        finish: np.ndarray,
        update_s: float,
    ) -> None:
        self.exchange, self.tensors, self.finish = exchange, tensors, finish
        self.flows = Flows(exchange.network.capacities)
        self.pushed, self.order = pushed, list(pushed)
        self.ranks = len(finish)
        total = sum(tensor.nbytes for tensor in tensors)
        self.update_s = [update_s * tensor.nbytes / total if total else 0.0 for tensor in tensors]
        sizes = np.array([tensor.nbytes for tensor in tensors])
        self.alpha, self.beta = exchange.costs.alpha(sizes).tolist(), exchange.costs.beta(sizes).tolist()
        self.lanes: dict[tuple[int, int], deque[tuple[int, Callable[[], None]]]] = {}
        self.missing = [self.ranks - 1 for _ in tensors]
        self.own = [[index for index in self.order if tensors[index].owner == rank] for rank in range(self.ranks)]
        self.busy = [True] * self.ranks
        self.received = {index: np.zeros(self.ranks) for index in self.order}
        self.end = finish.copy()
        self.updates: list[list[tuple[float, float]]] = [[] for _ in range(self.ranks)]

    def run(self) -> Served:
        for index in self.order:
            owner = self.tensors[index].owner
            for worker in range(self.ranks):
                if worker != owner:
                    self.flows.at(
                        float(self.pushed[index][worker]),
                        partial(self._send, worker, owner, index, partial(self._arrived, index)),
                    )
        for rank in range(self.ranks):
            self.flows.at(float(self.finish[rank]), partial(self._next, rank))
        self.flows.run()
        return self.received, self.end, self._updates()

    def _send(self, source: int, destination: int, index: int, then: Callable[[], None]) -> None:
        lane = self.lanes.setdefault((source, destination), deque())
        lane.append((index, then))
        if len(lane) == 1:
            self._start(source, destination)

    def _start(self, source: int, destination: int) -> None:
        index, _ = self.lanes[source, destination][0]
        network, nodes = self.exchange.network, self.exchange.nodes
        route = network.route(int(nodes[source]), int(nodes[destination]))
        most = network.most(route, self.beta[index])
        flow = partial(
            self.flows.send, self.tensors[index].nbytes, route, most, partial(self._sent, source, destination)
        )
        self.flows.at(self.flows.now + self.alpha[index] + network.delay_s(route), flow)

    def _sent(self, source: int, destination: int) -> None:
        lane = self.lanes[source, destination]
        _, then = lane.popleft()
        self.end[source] = max(self.end[source], self.flows.now)
        if lane:
            self._start(source, destination)
        then()

    def _arrived(self, index: int) -> None:
        """A gradient has arrived at its server."""
        self.missing[index] -= 1
        owner = self.tensors[index].owner
        if not self.busy[owner]:
            self._next(owner)

    def _next(self, rank: int) -> None:
        """The server updates its next tensor, if all gradients of that tensor have arrived."""
        self.busy[rank] = False
        if self.own[rank] and not self.missing[self.own[rank][0]]:
            index = self.own[rank].pop(0)
            self.busy[rank] = True
            summed = self.flows.now + self.exchange.costs.gamma * self.tensors[index].nbytes * (self.ranks - 1)
            self.updates[rank].append((summed, summed + self.update_s[index]))
            self.flows.at(summed + self.update_s[index], partial(self._send_back, rank, index))

    def _send_back(self, rank: int, index: int) -> None:
        self._received(rank, index)
        for worker in range(self.ranks):
            if worker != rank:
                self._send(rank, worker, index, partial(self._received, worker, index))
        self._next(rank)

    def _received(self, rank: int, index: int) -> None:
        self.received[index][rank] = self.flows.now
        self.end[rank] = max(self.end[rank], self.flows.now)

    def _updates(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Start and end of the n-th update of every rank; of zero length on a rank with fewer updates."""
        updates = []
        for turn in range(max(map(len, self.updates), default=0)):
            spans = [
                mine[turn] if turn < len(mine) else (end, end)
                for mine, end in zip(self.updates, self.end.tolist(), strict=True)
            ]
            updates.append((np.array([start for start, _ in spans]), np.array([end for _, end in spans])))
        return updates
