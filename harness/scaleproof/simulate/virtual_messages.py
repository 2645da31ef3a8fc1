"""What moves between ranks in virtual time, and what takes time: tasks of the event engine, and what follows them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

import numpy as np

from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import NEW_TASK, Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.growing import Growing
from scaleproof.simulate.engine.tables import RECEIVE, SEND, TASKS
from scaleproof.simulate.hop_classes import Hop
from scaleproof.simulate.link_network import Network

Next = Callable[[], None]
"""What follows at the end of a task."""


@dataclass(slots=True)
class Way:
    """From one rank to another: numbers of the engine, the links, and bytes that are under way."""

    route: int
    stream: int
    box: int
    links: tuple[int, ...]
    queued: int = 0
    tasks: dict[tuple[int, bool], np.ndarray] = field(default_factory=dict)
    """By bytes of a message and whether its connection takes it at once."""


class Moves:
    """`nodes`: the node of each rank; `buffer`: bytes that a connection takes before its receiver reads. A message goes
    at once and is kept where it arrives, as in a mailbox.

    What takes a time alone needs nothing of the engine, and waits here: the engine runs up to the first such moment."""

    now = 0.0
    """The time, in s."""

    def __init__(self, network: Network, nodes: Sequence[int], costs: MessageCosts, buffer: float) -> None:
        self._network, self._nodes, self._costs, self._buffer = network, nodes, costs, buffer
        self._engine = Engine(network.capacities)
        self._ways: dict[tuple[int, int], Way] = {}
        self._delays: dict[tuple[tuple[int, ...], int], tuple[float, float]] = {}
        """By links and bytes: a message's delay, s, and its highest rate, bytes/s."""
        self._hop_costs: dict[tuple[Hop, int], tuple[float, float]] = {}
        self._alike: dict[tuple[int, bool, float, float], np.ndarray] = {}
        """By bytes of a message, whether its connection takes it at once, its delay and highest rate: its rows."""
        self._following: dict[int, Next] = {}
        self._waiting: list[tuple[float, int, Next]] = []
        """A heap: when something has taken its time, in which order that was begun, and what follows."""
        self._begun, self._moving = 0, False
        self.messages, self.nbytes = 0, defaultdict[tuple[int, int], int](int)
        """Moved so far: all messages between ranks, and bytes from one to another."""

    def run(self) -> None:
        """Until nothing moves any more."""
        while True:
            first = self._waiting[0][0] if self._waiting else math.inf
            if self._moving or first >= self._engine.next:
                ended = self._engine.run(first)
                self.now = self._engine.now
                self._moving = len(ended) > 0
                for task in ended.tolist():
                    self._following.pop(task)()
                if self._moving:
                    continue
                if first == math.inf:
                    return
            else:
                self._engine.wait_until(first)
                self.now = first
            while self._waiting and self._waiting[0][0] <= first:
                heappop(self._waiting)[2]()

    def after(self, seconds: float, then: Next) -> None:
        """Something takes a time."""
        heappush(self._waiting, (self.now + seconds, self._begun, then))
        self._begun += 1

    def move(self, source: int, destination: int, nbytes: int, sent: Next, arrived: Next) -> None:
        """A message over the connection of two ranks. `sent`: its sender may go on; `arrived`: all of it is there."""
        if source == destination:
            arrived()
            sent()
            return
        way = self._way(source, destination)
        self._moving = True
        self.messages += 1
        self.nbytes[source, destination] += nbytes
        way.queued += nbytes
        fits = way.queued <= self._buffer
        if (nbytes, fits) not in way.tasks:
            way.tasks[nbytes, fits] = self._tasks(way, source, nbytes, fits)
        send = self._engine.add_rows(way.tasks[nbytes, fits])
        self._following[send + 1] = partial(self._arrived, way, nbytes, arrived)
        if fits:
            sent()
        else:
            self._following[send] = sent

    def _tasks(self, way: Way, source: int, nbytes: int, fits: bool) -> np.ndarray:
        """Rows of the engine for a message: that it is sent, and that it is received."""
        key = nbytes, fits, *self._delay(way.links, nbytes)
        if key not in self._alike:
            self._alike[key] = self._rows(*key)
        rows = self._alike[key].copy()
        rows["box"], rows["source"] = way.box, source
        rows["route"][0], rows["stream"][0] = way.route, way.stream
        return rows

    def _rows(self, nbytes: int, fits: bool, delay: float, highest: float) -> np.ndarray:
        """The same of any two ranks."""
        tasks = Growing(TASKS, 2, NEW_TASK)
        tasks.add(
            1,
            kind=SEND,
            lane=NONE,
            amount=nbytes,
            buffer=self._buffer,
            highest=highest,
            delay=delay,
            watched=not fits,
        )
        tasks.add(1, kind=RECEIVE, lane=NONE, watched=True)
        return np.asarray(tasks.rows)

    @staticmethod
    def _arrived(way: Way, nbytes: int, arrived: Next) -> None:
        way.queued -= nbytes
        arrived()

    def _way(self, source: int, destination: int) -> Way:
        key = source, destination
        if key not in self._ways:
            links = self._network.route(self._nodes[source], self._nodes[destination])
            stream, box = int(self._engine.streams(1)[0]), int(self._engine.boxes(1)[0])
            self._ways[key] = Way(self._engine.route(links), stream, box, links)
        return self._ways[key]

    def _delay(self, links: tuple[int, ...], nbytes: int) -> tuple[float, float]:
        if (links, nbytes) not in self._delays:
            alpha, beta = self._cost(self._costs.hop(len(links)), nbytes)
            self._delays[links, nbytes] = alpha + self._network.delay_s(links), self._network.most(links, beta)
        return self._delays[links, nbytes]

    def _cost(self, hop: Hop, nbytes: int) -> tuple[float, float]:
        """Alpha, s, and beta, s/byte, of a message on a class of hops."""
        if (hop, nbytes) not in self._hop_costs:
            size, costs = np.array([float(nbytes)]), self._costs.on(hop)
            self._hop_costs[hop, nbytes] = float(costs.alpha(size)[0]), float(costs.beta(size)[0])
        return self._hop_costs[hop, nbytes]


def nothing() -> None:
    """Nobody waits for this end."""
