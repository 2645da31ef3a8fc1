"""Which collective call a channel carries next, where that is decided when it is free: the first by priority of those
that are ready on all ranks, or as many as the transport fuses into one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleproof.simulate.call_schedules import Schedules
from scaleproof.simulate.collective_schedules import Pattern
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE


@dataclass(slots=True, eq=False)
class Pending:
    """A call that was submitted. `done`: a task per rank that ends with it; `begun` is told the tasks of the call that
    carries it."""

    pattern: Pattern
    nbytes: float
    priority: int
    done: np.ndarray
    begun: Callable[[np.ndarray], Any]
    ready: bool = False


class Coordinator:
    """Of one channel. `fusion`: most bytes of a fused call; None: calls go by priority, one at a time."""

    def __init__(self, engine: Engine, ranks: int, calls: Schedules, fusion: float | None) -> None:
        self._engine, self._ranks, self._calls, self._fusion = engine, ranks, calls, fusion
        self._pending: list[Pending] = []
        self._watched: dict[int, Pending | None] = {}
        """What each watched task tells: that a call is ready on all ranks, or (None) that the channel is free."""
        self._busy = False

    def submit(
        self, pattern: Pattern, nbytes: float, priority: int, main: np.ndarray, begun: Callable[[np.ndarray], Any]
    ) -> np.ndarray:
        """A call that each rank has ready after its task of `main`. Returns a task per rank that ends with it."""
        done = self._engine.work(0.0, count=self._ranks, held=True)
        call = Pending(pattern, nbytes, priority, done, begun)
        self._pending.append(call)
        self._watch(main, call)
        return done

    def told(self, tasks: np.ndarray) -> None:
        """Watched tasks have ended."""
        for task in tasks.tolist():
            call = self._watched.pop(task)
            if call is None:
                self._busy = False
            else:
                call.ready = True
        if not self._busy:
            self._start(self._next() if self._fusion is None else self._fused(self._fusion))

    def _next(self) -> list[Pending]:
        ready = [call for call in self._pending if call.ready]
        return [min(ready, key=lambda call: call.priority)] if ready else []

    def _fused(self, limit: float) -> list[Pending]:
        """In the order of submission, until one is not ready or does not fit."""
        chosen, nbytes = list[Pending](), 0.0
        for call in self._pending:
            if not call.ready or chosen and nbytes + call.nbytes > limit:
                break
            chosen.append(call)
            nbytes += call.nbytes
        return chosen

    def _start(self, chosen: list[Pending]) -> None:
        if not chosen:
            return
        self._busy = True
        self._pending = [call for call in self._pending if call not in chosen]
        schedule = self._calls.of(chosen[0].pattern, sum(call.nbytes for call in chosen))
        tasks = self._engine.call(schedule, np.full(self._ranks, NONE))
        for call in chosen:
            self._engine.after(call.done, tasks)
            self._engine.release(call.done)
            call.begun(tasks)
        self._watch(tasks, None)

    def _watch(self, tasks: np.ndarray, call: Pending | None) -> None:
        """Watches when all of these have ended."""
        all_of_them = self._engine.work(0.0, watched=True)
        self._engine.after(np.repeat(all_of_them, len(tasks)), tasks)
        self._watched[int(all_of_them[0])] = call
