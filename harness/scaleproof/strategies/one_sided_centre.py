"""A centre in memory that its workers read, and into which they write their moves, by one-sided operations."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import AwaitFlag, Charge, Effect, Flag, Get, Put
from scaleproof.strategies.centre import Centre
from scaleproof.strategies.replica import parts_of

CENTRE, PUSHES, ENDS, TAKEN = "centre", "pushes", "ends", "taken"


class OneSidedCentre(Centre):
    """A worker's move has a region of its own, which it writes again only when the centre has taken it."""

    pushes = 0
    """Moves that this worker has written."""

    @property
    def one_sided(self) -> bool:
        """Whether it is reached so, and not by messages."""
        return bool(self.case.value("strategy.exchange") == "one_sided")

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram."""
        if not self.one_sided or self.worker >= 0:
            return {}
        part = parts_of(len(self.x), self.servers)[self.rank]
        self.windows = {rank: self.memory(part.stop - part.start) for rank in self._workers()}
        centre = self.memory(part.stop - part.start)
        centre[:] = self.x[part]
        return {CENTRE: centre, **{_moved_by(rank): window for rank, window in self.windows.items()}}

    def hold_in_memory(self) -> Generator[Effect, Any, None]:
        """The program of a rank that serves, until all workers have ended. It writes the centre by a put to itself, so
        that no worker reads half of a move; the bytes of these puts are counted too."""
        self.centre = self.x[parts_of(len(self.x), self.servers)[self.rank]]
        taken, ended = dict.fromkeys(self._workers(), 0), 0
        while ended < self.case.workers:
            yield AwaitFlag(PUSHES, sum(taken.values()) + ended + 1)
            ended = yield AwaitFlag(ENDS, 0)
            for worker in taken:
                if (yield AwaitFlag(_pushed_by(worker), 0)) > taken[worker]:
                    taken[worker] += 1
                    self.centre += self.windows[worker]
                    yield Charge(self.centre.nbytes)
                    yield Put(self.rank, self.centre, CENTRE)
                    yield Flag(worker, TAKEN)
                    self._moved(1)

    def read_centre(self) -> Generator[Effect, Any, np.ndarray]:
        """The centre, after the last move of this worker."""
        yield AwaitFlag(TAKEN, self.pushes * self.servers)
        parts = []
        for server in range(self.servers):
            parts.append((yield Get(server, CENTRE)))
        return np.concatenate(parts)

    def write_move(self, difference: np.ndarray) -> Generator[Effect, Any, None]:
        """Adds to the centre."""
        self.pushes += 1
        for server, part in enumerate(parts_of(len(self.x), self.servers)):
            yield Put(server, difference[part], _moved_by(self.rank))
            yield Flag(server, _pushed_by(self.rank))
            yield Flag(server, PUSHES)

    def end_in_memory(self) -> Generator[Effect, Any, None]:
        """The last flag of a worker."""
        for server in range(self.servers):
            yield Flag(server, ENDS)
            yield Flag(server, PUSHES)

    def _workers(self) -> range:
        """Their ranks."""
        return range(self.servers, self.world_size)


def _moved_by(rank: int) -> str:
    return f"moved by {rank}"


def _pushed_by(rank: int) -> str:
    return f"pushed by {rank}"
