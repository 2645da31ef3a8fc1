"""Fluid flows over links that are shared fairly, and a clock that goes from one end of a flow or timer to the next."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence

import numpy as np


class Flows:
    """Time, timers and flows. What is due at one moment is done together before rates are shared out anew."""

    def __init__(self, capacities: np.ndarray) -> None:
        self.now = 0.0
        self._capacities = capacities
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._new: list[tuple[float, float, Sequence[int], Callable[[], None]]] = []
        self._left, self._rates, self._caps = np.empty(0), np.empty(0), np.empty(0)
        self._routes = np.empty((0, 1), np.int64)
        self._done: list[Callable[[], None]] = []
        self._changed = False

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Do something at a time, now if that is past."""
        heapq.heappush(self._timers, (max(moment, self.now), next(self._count), action))

    def send(self, nbytes: float, route: Sequence[int], cap: float, done: Callable[[], None]) -> None:
        """A flow from now on, of at most `cap` bytes/s; `done` is called at its end."""
        if nbytes <= 0 or (not len(route) and np.isinf(cap)):
            self.at(self.now, done)
        else:
            self._new.append((nbytes, cap, route, done))

    def run(self) -> None:
        """Until nothing is left to happen."""
        from scaleproof.simulate import fair_rates

        while self._timers or self._new or len(self._left):
            if self._new:
                self._take_in()
            if self._changed:
                self._rates = fair_rates.max_min_rates(self._routes, self._capacities, self._caps)
                self._changed = False
            timer = self._timers[0][0] - self.now if self._timers else np.inf
            step, ended = fair_rates.advance(self._left, self._rates, timer)
            self.now += step
            if ended.any():
                self._finish(ended)
            horizon = self.now + fair_rates.SAME * max(step, abs(self.now) * fair_rates.SAME)
            while self._timers and self._timers[0][0] <= horizon:
                heapq.heappop(self._timers)[2]()

    def _take_in(self) -> None:
        longest = max(self._routes.shape[1], *(len(route) for _, _, route, _ in self._new))
        filler = len(self._capacities)
        rows = np.full((len(self._left) + len(self._new), longest), filler, np.int64)
        rows[: len(self._left), : self._routes.shape[1]] = self._routes
        for row, (_, _, route, _) in enumerate(self._new, len(self._left)):
            rows[row, : len(route)] = route
        self._routes = rows
        self._left = np.append(self._left, [nbytes for nbytes, *_ in self._new])
        self._caps = np.append(self._caps, [cap for _, cap, *_ in self._new])
        self._done += [done for *_, done in self._new]
        self._new = []
        self._changed = True

    def _finish(self, over: np.ndarray) -> None:
        ended = [self._done[number] for number in np.flatnonzero(over)]
        kept = np.flatnonzero(~over)
        self._left, self._rates = self._left[kept], self._rates[kept]
        self._caps, self._routes = self._caps[kept], self._routes[kept]
        self._done = [self._done[number] for number in kept]
        for done in ended:
            done()
        self._changed = True
