"""When collective calls start and end on every rank: computed round by round if no two messages can share a link,
otherwise in the event engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.buffered_rounds import Connections, exclusive
from scaleproof.simulate.engine_calls import run_calls
from scaleproof.simulate.link_network import Network


class _Messages(NamedTuple):
    """Of each message of a round: bytes, s until its first byte leaves, s until all have arrived after that, and s of
    its reduction."""

    size: np.ndarray
    before: np.ndarray
    moving: np.ndarray
    reducing: np.ndarray


class Exchange:
    """Runs calls over a network. `nodes`: the node of each rank; `free`: when each rank's channels are free, in s;
    `buffer`: bytes that a connection takes before its receiver reads.

    `symmetry` False: symmetric rounds are computed one by one, to check the shortcut."""

    def __init__(
        self,
        network: Network,
        nodes: Sequence[int],
        costs: MessageCosts,
        channels: int = 1,
        symmetry: bool = True,
        buffer: float = 0.0,
    ) -> None:
        self.network, self.nodes, self.costs = network, np.array(nodes), costs
        self.symmetry, self.buffer = symmetry, buffer
        self.free = np.zeros((channels, len(nodes)))
        alone = channels == 1 and len(set(nodes)) == len(nodes) and network.star is not None
        self._star = tuple(part[self.nodes] for part in network.star) if alone and network.star is not None else None
        self._connections = Connections(len(nodes), buffer)

    def run(self, calls: Sequence[Call]) -> None:
        """Fill in `start` and `end`. Calls of one channel run in the order of `calls`. A rank starts a call when its
        input is ready and its channel is free."""
        if self._star is not None and self.exact([call.pattern for call in calls]):
            for call in calls:
                call.start = np.maximum(call.ready, self.free[0])
                call.end = self._in_step(call.pattern, call.nbytes, call.start + self.costs.call, self._star)
                self.free[0] = call.end
            return
        run_calls(self.network, self.nodes.tolist(), self.costs, calls, self.free, self.buffer)

    def exact(self, patterns: Iterable[Pattern]) -> bool:
        """Whether no two messages of such calls can share a link. Where senders do not wait for their receivers, each
        must have a single receiver then."""
        chosen = list(patterns)
        if self._star is None or not all(pattern.exclusive for pattern in chosen):
            return False
        receivers = [pattern.receivers for pattern in chosen] if self.buffer else []
        return not receivers or all(
            one is not None and receivers[0] is not None and np.array_equal(one, receivers[0]) for one in receivers
        )

    def _in_step(self, pattern: Pattern, nbytes: float, start: np.ndarray, star: tuple[np.ndarray, ...]) -> np.ndarray:
        """Exact on a star with one rank per node: every link carries one message at a time."""
        at = start.copy()
        for round_, times in pattern.rounds:
            messages = self._messages(round_, nbytes, star)
            duration = messages.before + messages.moving + messages.reducing
            together = (
                self.symmetry
                and at.min() == at.max()
                and duration.min() == duration.max()
                and round_.symmetric(len(at))
                and not (self._connections.arrives > at).any()
            )
            if together:
                at += times * duration[0]
                self._connections.all_arrived(at - messages.reducing[0])
            else:
                self._connections.rounds(exclusive(round_.source, round_.destination, *messages), times, at)
        return at

    def _messages(self, round_: Round, nbytes: float, star: tuple[np.ndarray, ...]) -> _Messages:
        up, down, delay = star
        size = round_.share * nbytes
        rate = np.minimum(up[round_.source], down[round_.destination])
        return _Messages(
            size,
            self.costs.alpha(size) + delay[round_.source] + delay[round_.destination],
            size * np.maximum(self.costs.beta(size), 1 / rate),
            np.where(round_.reduces, self.costs.gamma * size, 0.0),
        )
