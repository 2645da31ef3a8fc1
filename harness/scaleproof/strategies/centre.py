"""A centre that workers move: the first ranks hold a part each of one more set of parameters, and train nothing."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import ANY, Charge, Effect, Receive, Send
from scaleproof.spec.faults import Name
from scaleproof.strategies.replica import Replica, parts_of
from scaleproof.transports.mailbox import Lost

TO_CENTRE, FROM_CENTRE = 0, 1
GET, MOVE, EXCHANGE, ENDED = range(4)
"""What a message to the centre wants, in its first element: the centre; to add to it; to move it towards what is sent,
and get it as it was before; nothing more."""
BORNE: frozenset[Name] = frozenset({"kill", "replace"})
"""Faults of workers."""


class Centre(Replica):
    """Ranks that serve hold the centre in `x`."""

    share = 0.0
    """Of a step towards what a worker sends with EXCHANGE."""

    def hold(self) -> Generator[Effect, Any, None]:
        """The program of a rank that serves, until all workers have ended."""
        part, ended = parts_of(len(self.x), self.servers)[self.rank], set[int]()
        centre, moves = self.x[part], 0
        while len(ended) < self.case.workers:
            message = yield Receive(ANY, TO_CENTRE)
            if isinstance(message, Lost):
                if message.source not in self.faults.returning:
                    ended.add(message.source)
                continue
            kind, value = int(message.value[0]), message.value[1:]
            if kind == ENDED:
                ended.add(message.source)
                continue
            if kind in (GET, EXCHANGE):
                yield Send(message.source, centre.copy(), FROM_CENTRE)
            if kind != GET:
                centre += value if kind == MOVE else np.float32(self.share) * (value - centre)
                moves += 1
                self.done = moves * self.case.value("strategy.tau", 1) // self.case.workers
                self.keep_if_due()
            yield Charge(centre.nbytes)

    def ask(self, kind: int, value: np.ndarray | None = None) -> Generator[Effect, Any, np.ndarray]:
        """Sends to all parts of the centre; the result is what they send back, or nothing."""
        parts = parts_of(len(self.x), self.servers)
        for server, part in enumerate(parts):
            sent = np.empty(0, np.float32) if value is None else value[part]
            message = np.concatenate([[np.float32(kind)], sent]).astype(np.float32, copy=False)
            yield Send(server, message, TO_CENTRE, control=value is None)
        if kind not in (GET, EXCHANGE):
            return np.empty(0, np.float32)
        answers = []
        for server in range(self.servers):
            answers.append((yield Receive(server, FROM_CENTRE)).value)
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def start_successor(self) -> Generator[Effect, Any, None]:
        """A successor begins with the centre."""
        if self.is_successor:
            self.x[:] = yield from self.ask(GET)

    def leave(self) -> Generator[Effect, Any, None]:
        """The last message of a worker."""
        yield from self.ask(ENDED)
