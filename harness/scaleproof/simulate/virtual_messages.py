"""What moves between ranks in virtual time, and what takes time: tasks of the event engine, and what follows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network

Next = Callable[[], None]
"""What follows at the end of a task."""


class Moves:
    """`nodes`: the node of each rank; `buffer`: bytes that a connection takes before its receiver reads. A message goes
    at once and is kept where it arrives, as in a mailbox."""

    def __init__(self, network: Network, nodes: Sequence[int], costs: MessageCosts, buffer: float) -> None:
        self._network, self._nodes, self._costs, self._buffer = network, nodes, costs, buffer
        self._engine = Engine(network.capacities)
        self._pairs: dict[tuple[int, int], tuple[int, int, int, tuple[int, ...]]] = {}
        self._following: dict[int, Next] = {}

    @property
    def now(self) -> float:
        """The time, in s."""
        return self._engine.now

    def run(self) -> None:
        """Until nothing moves any more."""
        while len(ended := self._engine.run()):
            for task in ended.tolist():
                self._following.pop(task)()

    def after(self, seconds: float, then: Next) -> None:
        """Something takes a time."""
        self._following[int(self._engine.work(seconds, watched=True)[0])] = then

    def move(self, source: int, destination: int, nbytes: int, sent: Next, arrived: Next) -> None:
        """A message over the connection of two ranks. `sent`: its sender may go on; `arrived`: all of it is there."""
        if source == destination:
            arrived()
            sent()
            return
        route, stream, box, links = self._pair(source, destination)
        size, costs = np.array([float(nbytes)]), self._costs.on(self._costs.hop(len(links)))
        alpha, beta = float(costs.alpha(size)[0]), float(costs.beta(size)[0])
        send = self._engine.send(
            box,
            source,
            route,
            nbytes,
            buffer=self._buffer,
            highest=self._network.most(links, beta),
            delay=alpha + self._network.delay_s(links),
            stream=stream,
            watched=True,
        )
        receive = self._engine.receive(box, source, watched=True)
        self._following[int(send[0])], self._following[int(receive[0])] = sent, arrived

    def _pair(self, source: int, destination: int) -> tuple[int, int, int, tuple[int, ...]]:
        """Route, connection, box and links from one rank to another."""
        key = source, destination
        if key not in self._pairs:
            links = self._network.route(self._nodes[source], self._nodes[destination])
            route, stream = self._engine.route(links), int(self._engine.streams(1)[0])
            self._pairs[key] = route, stream, int(self._engine.boxes(1)[0]), links
        return self._pairs[key]


def nothing() -> None:
    """Nobody waits for this end."""
