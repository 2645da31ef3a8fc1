"""When collective calls start and end on every rank: computed round by round if no two messages can share a link,
otherwise in the event engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine_calls import run_calls
from scaleproof.simulate.link_network import Network


class _Messages(NamedTuple):
    """Of each message of a round: bytes, s until its first byte leaves, s until all have arrived after that, and s of
    its reduction."""

    size: np.ndarray
    before: np.ndarray
    moving: np.ndarray
    reducing: np.ndarray


class Queued(Exception):
    """A connection would hold more bytes than it can buffer, which only the event engine counts."""


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
        self._sent: deque[tuple[np.ndarray, float]] = deque()
        """When the latest messages of each rank arrived, in s, and their bytes; the last is the latest."""

    def run(self, calls: Sequence[Call]) -> None:
        """Fill in `start` and `end`. Calls of one channel run in the order of `calls`. A rank starts a call when its
        input is ready and its channel is free. Raises Queued after earlier calls."""
        if self._star is not None and self.exact([call.pattern for call in calls]):
            first = not self._sent
            try:
                for call in calls:
                    call.start = np.maximum(call.ready, self.free[0])
                    begins = call.start + self.costs.call
                    call.end = self._in_step(call.pattern, call.nbytes, begins, self._star)
                    self.free[0] = call.end
                return
            except Queued:
                if not first:
                    raise
                self.free = np.zeros_like(self.free)
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
                and not (self._sent and (self._sent[-1][0] > at).any())
            )
            if together:
                at += times * duration[0]
                self._sent = deque([(at - messages.reducing[0], 0.0)])
                continue
            for _ in range(times):
                self._round(round_, messages, at)
        return at

    def _round(self, round_: Round, messages: _Messages, at: np.ndarray) -> None:
        """One round; `at`: when each rank enters it, and then when it has done with it. Raises Queued."""
        source, destination = round_.source, round_.destination
        waits = messages.size > self.buffer
        begins = np.where(waits, np.maximum(at[source], at[destination]), at[source]) + messages.before
        if self._sent:
            self._count(at[source], messages.size, source)
            begins = np.maximum(begins, self._sent[-1][0][source])
        arrived = begins + messages.moving
        received = np.maximum(at[destination], arrived) + messages.reducing
        at[source] = np.where(waits, arrived, at[source])
        at[destination] = np.maximum(at[destination], received)
        if self.buffer:
            ends = self._sent[-1][0].copy() if self._sent else np.zeros(len(at))
            ends[source] = arrived
            self._sent.append((ends, float(messages.size.max())))

    def _count(self, now: np.ndarray, size: np.ndarray, source: np.ndarray) -> None:
        """Raises Queued where the connection of a sender has no room for its message, so that the sender waits."""
        queued = np.where(size > self.buffer, 0.0, size)
        for ends, nbytes in reversed(self._sent):
            late = ends[source] > now
            if not late.any():
                break
            queued[late] += nbytes
        if (queued > self.buffer).any():
            raise Queued
        while len(self._sent) > 1 and (self._sent[0][0][source] <= now.min()).all():
            self._sent.popleft()

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
