"""A centre that workers move: the first ranks hold a part each of one more set of parameters, and train nothing."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import ANY, Charge, Effect, Receive, Send
from scaleproof.strategies.replica import Replica, parts_of

TO_CENTRE, FROM_CENTRE = 0, 1
GET, MOVE, EXCHANGE, ENDED = range(4)
"""What a message to the centre wants, in its first element: the centre; to add to it; to move it towards what is sent,
and get it as it was before; nothing more."""


class Centre(Replica):
    """Ranks that serve hold the centre in `x`."""

    share = 0.0
    """Of a step towards what a worker sends with EXCHANGE."""
    together = False
    """With EXCHANGE: whether the centre waits for all workers, and moves by the sum of their differences."""
    period = 1
    """Steps of a worker for each of its moves of the centre."""
    moves = 0
    """Of the centre, by all workers."""

    def hold(self) -> Generator[Effect, Any, None]:
        """The program of a rank that serves, until all workers have ended."""
        self.centre = self.x[parts_of(len(self.x), self.servers)[self.rank]]
        ended, waiting = 0, dict[int, np.ndarray]()
        while ended < self.case.workers:
            message = yield Receive(ANY, TO_CENTRE)
            kind, value = int(message.value[0]), message.value[1:]
            if kind == ENDED:
                ended += 1
            elif kind == EXCHANGE and self.together:
                waiting[message.source] = value
            else:
                yield from self._answer(message.source, kind, value)
            if waiting and len(waiting) + ended == self.case.workers:
                yield from self._answer_all(waiting)
                waiting = {}

    def _answer(self, source: int, kind: int, value: np.ndarray) -> Generator[Effect, Any, None]:
        if kind in (GET, EXCHANGE):
            yield Send(source, self.centre.copy(), FROM_CENTRE)
        if kind != GET:
            self.centre += value if kind == MOVE else np.float32(self.share) * (value - self.centre)
            self._moved(1)
        yield Charge(self.centre.nbytes)

    def _answer_all(self, waiting: dict[int, np.ndarray]) -> Generator[Effect, Any, None]:
        """All get the centre as it was before; sums are in the order of ranks, so that they have the same bits on every
        clock."""
        for source in sorted(waiting):
            yield Send(source, self.centre.copy(), FROM_CENTRE)
        before = self.centre.copy()
        for source in sorted(waiting):
            self.centre += np.float32(self.share) * (waiting[source] - before)
        yield Charge(len(waiting) * self.centre.nbytes)
        self._moved(len(waiting))

    def _moved(self, count: int) -> None:
        """Counts moves: the centre is as far as its workers."""
        self.moves += count
        self.done = min(self.moves // self.case.workers * self.period, self.case.warmup + self.case.steps)
        self.keep_if_due()

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

    def leave(self) -> Generator[Effect, Any, None]:
        """The last message of a worker."""
        yield from self.ask(ENDED)
