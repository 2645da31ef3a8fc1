"""Two more ways to a centre, those of jin2016. Rank 0 holds it beside its own training, and its passive side moves it;
or a server holds it in regions behind a lock word, which workers take by compare-and-swap."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import AwaitFlag, Call, Charge, CompareAndSwap, Effect, Get, Put, Sleep
from scaleproof.strategies.centre import Centre

HOLDER = 0
"""The rank that holds the centre in both forms."""
LOCK, SENT, CENTRE = "lock", "sent", "centre"
"""The lock word, and the regions for what a worker sends and for the centre."""
READY = 0
"""The lock word while nobody has it."""
MOVE = "move"
"""What peers call."""


class CentreForms(Centre):
    """`share`: as in Centre. `beside`: rank 0 trains too; `locked`: the centre has a lock."""

    locked = False
    poll_s = 50e-6
    """Pause between two tries to take the lock, true time."""

    @property
    def beside(self) -> bool:
        """Whether rank 0 holds the centre beside its own training."""
        return not self.servers

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram."""
        self.centre, self.lock = self.x.copy(), threading.Lock()
        if not self.locked or self.worker >= 0:
            return {}
        self.centre, self.sent = self.memory(len(self.x)), self.memory(len(self.x))
        self.centre[:] = self.x
        return {CENTRE: self.centre, SENT: self.sent}

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """See RankProgram: the centre as it was, and it moves towards what a worker sends."""
        self.charge(2 * value.nbytes)
        return self._moved(value)

    def _moved(self, value: np.ndarray) -> np.ndarray:
        """The centre as it was; rank 0's training and its passive side both move it."""
        with self.lock:
            before = self.centre.copy()
            self.centre += np.float32(self.share) * (value - before)
        return before

    def move_beside(self) -> Generator[Effect, Any, np.ndarray]:
        """A worker sends its parameters to rank 0; the centre as it was."""
        if self.rank == HOLDER:
            yield Charge(2 * self.x.nbytes)
            return self._moved(self.x)
        centre: np.ndarray = yield Call(HOLDER, self.x, MOVE)
        return centre

    def keep(self) -> None:
        """See Replica: the rank that holds the centre beside its training keeps the centre."""
        super().keep()
        if self.beside and self.rank == HOLDER:
            with self.lock:
                self.snapshots[-1] = replace(self.snapshots[-1], values=self.centre.copy())

    def hold_locked(self) -> Generator[Effect, Any, None]:
        """The program of the server, until all workers have ended: it waits for Done, moves the centre, and sets
        Ready."""
        ended, moves = 0, 0
        while ended < self.case.workers:
            word = yield AwaitFlag(LOCK, self._word(1, 0))
            if word >= self._word(2, 0):
                ended += 1
            else:
                self.x += np.float32(self.share) * (self.sent - self.x)
                self.centre[:] = self.x
                yield Charge(2 * self.x.nbytes)
                moves += 1
                self.done = moves // self.case.workers
                self.keep_if_due()
            yield CompareAndSwap(self.rank, LOCK, word, READY)

    def move_locked(self) -> Generator[Effect, Any, np.ndarray]:
        """Ready, Receiving: a worker has the lock, puts its parameters and gets the centre; Done: the server moves it.
        The result is the centre as it was."""
        receiving = self._word(0, self.rank)
        yield from self._take_lock(receiving)
        yield Put(HOLDER, self.x, SENT)
        centre: np.ndarray = yield Get(HOLDER, CENTRE)
        yield CompareAndSwap(HOLDER, LOCK, receiving, self._word(1, self.rank))
        return centre

    def leave_locked(self) -> Generator[Effect, Any, None]:
        """The last of a worker."""
        yield from self._take_lock(self._word(2, self.rank))

    def _take_lock(self, word: int) -> Generator[Effect, Any, None]:
        while (yield CompareAndSwap(HOLDER, LOCK, READY, word)) != READY:
            yield Sleep(self.poll_s)

    def _word(self, state: int, rank: int) -> int:
        """The lock word of a rank: Receiving (0), Done (1), or that it has ended (2), higher in this order."""
        return 1 + state * self.world_size + rank
