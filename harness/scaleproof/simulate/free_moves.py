"""Messages that take no time, for models that know computing alone: a queue of moments, and no network."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count

from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.virtual_messages import Moves, Next
from scaleproof.spec.case import OwnCase, TrainCase


class FreeMoves(Moves):
    """What ends at one moment ends in the order in which it began."""

    def __init__(self) -> None:
        self._later, self._numbers = list[tuple[float, int, Next]](), count()
        self._arriving = deque[Next]()
        """At this moment."""

    def run(self) -> None:
        """See Moves."""
        later, arriving = self._later, self._arriving
        while True:
            while arriving:
                arriving.popleft()()
            if not later:
                return
            self.now, _, then = heapq.heappop(later)
            then()

    def after(self, seconds: float, then: Next) -> None:
        """See Moves. What takes no time ends at once."""
        if seconds > 0:
            heapq.heappush(self._later, (self.now + seconds, next(self._numbers), then))
        else:
            then()

    def at_once(self, then: Next) -> None:
        """At this moment, after what is under way."""
        self._arriving.append(then)

    def move(self, source: int, destination: int, nbytes: int, sent: Next, arrived: Next) -> None:
        """See Moves. The receiver goes on after the sender, so that ranks do not call each other ever deeper."""
        if source == destination:
            arrived()
            sent()
            return
        self.at_once(arrived)
        sent()


def moves_of(
    case: OwnCase | TrainCase, network: Network, nodes: Sequence[int], costs: MessageCosts, buffer: float
) -> Moves:
    """As the case's option `messages` says."""
    if case.value("fabric.messages") == "free":
        return FreeMoves()
    return Moves(network, nodes, costs, buffer)
