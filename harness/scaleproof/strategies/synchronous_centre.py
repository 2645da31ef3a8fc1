"""A centre that moves for all its workers together, as the textbook form of elastic averaging has it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import ANY, Charge, Effect, Receive, Send
from scaleproof.strategies.centre import ENDED, FROM_CENTRE, GET, TO_CENTRE, Centre
from scaleproof.strategies.replica import parts_of
from scaleproof.transports.mailbox import Lost


class SynchronousCentre(Centre):
    """Workers send their parameters with EXCHANGE, all in the same steps."""

    def hold_synchronously(self) -> Generator[Effect, Any, None]:
        """The program of a rank that serves, until all workers have ended: it waits for all that have not."""
        centre = self.x[parts_of(len(self.x), self.servers)[self.rank]]
        ended, rounds, waiting = set[int](), 0, dict[int, np.ndarray]()
        while len(ended) < self.case.workers:
            message = yield Receive(ANY, TO_CENTRE)
            if isinstance(message, Lost):
                waiting.pop(message.source, None)
                if message.source not in self.faults.returning:
                    ended.add(message.source)
            elif int(message.value[0]) == ENDED:
                ended.add(message.source)
            elif int(message.value[0]) == GET:  # of a successor
                yield Send(message.source, centre.copy(), FROM_CENTRE)
            else:
                waiting[message.source] = message.value[1:]
            if waiting and len(waiting) + len(ended) == self.case.workers:
                yield from self._update_synchronously(centre, waiting)
                waiting, rounds = {}, rounds + 1
                self.done = rounds * self.case.value("strategy.tau", 1)
                self.keep_if_due()

    def _update_synchronously(self, centre: np.ndarray, waiting: dict[int, np.ndarray]) -> Generator[Effect, Any, None]:
        """All get the centre as it was. Sums are in the order of ranks, so that they have the same bits on every
        clock."""
        before = centre.copy()
        for source in sorted(waiting):
            yield Send(source, before, FROM_CENTRE)
        for source in sorted(waiting):
            centre += np.float32(self.share) * (waiting[source] - before)
        yield Charge(len(waiting) * centre.nbytes)
