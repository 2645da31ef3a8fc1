"""Fluid flows that share links fairly, and a clock that jumps to the next end of a flow or timer."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence

import numpy as np


class Flows:
    """Time, timers and flows. All events of one moment are handled before the rates are computed again."""

    def __init__(self, capacities: np.ndarray) -> None:
        self.now = 0.0
        self._capacities = capacities
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._new: list[tuple[float, float, Sequence[int], Callable[[], None]]] = []
        self._remaining, self._rates, self._caps = np.empty(0), np.empty(0), np.empty(0)
        self._routes = np.empty((0, 1), np.int64)
        self._callbacks: list[Callable[[], None]] = []
        self._changed = False

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Run `action` at `moment`, or now if that has passed."""
        heapq.heappush(self._timers, (max(moment, self.now), next(self._count), action))

    def send(self, nbytes: float, route: Sequence[int], cap: float, ended: Callable[[], None]) -> None:
        """Start a flow of at most `cap` bytes/s; `ended` is called at its end."""
        if nbytes <= 0 or (not len(route) and np.isinf(cap)):
            self.at(self.now, ended)
        else:
            self._new.append((nbytes, cap, route, ended))

    def run(self) -> None:
        """Run until no timers and no flows remain."""
        from scaleproof.simulate import fair_rates

        while self._timers or self._new or len(self._remaining):
            if self._new:
                self._add_new()
            if self._changed:
                self._rates = fair_rates.max_min_rates(self._routes, self._capacities, self._caps)
                self._changed = False
            timer = self._timers[0][0] - self.now if self._timers else np.inf
            step, ended = fair_rates.advance(self._remaining, self._rates, timer)
            self.now += step
            if ended.any():
                self._finish(ended)
            horizon = self.now + fair_rates.SAME * max(step, abs(self.now) * fair_rates.SAME)
            while self._timers and self._timers[0][0] <= horizon:
                heapq.heappop(self._timers)[2]()

    def _add_new(self) -> None:
        longest = max(self._routes.shape[1], *(len(route) for _, _, route, _ in self._new))
        filler = len(self._capacities)
        rows = np.full((len(self._remaining) + len(self._new), longest), filler, np.int64)
        rows[: len(self._remaining), : self._routes.shape[1]] = self._routes
        for row, (_, _, route, _) in enumerate(self._new, len(self._remaining)):
            rows[row, : len(route)] = route
        self._routes = rows
        self._remaining = np.append(self._remaining, [nbytes for nbytes, *_ in self._new])
        self._caps = np.append(self._caps, [cap for _, cap, *_ in self._new])
        self._callbacks += [done for *_, done in self._new]
        self._new = []
        self._changed = True

    def _finish(self, ended: np.ndarray) -> None:
        callbacks = [self._callbacks[number] for number in np.flatnonzero(ended)]
        flowing = np.flatnonzero(~ended)
        self._remaining, self._rates = self._remaining[flowing], self._rates[flowing]
        self._caps, self._routes = self._caps[flowing], self._routes[flowing]
        self._callbacks = [self._callbacks[number] for number in flowing]
        for callback in callbacks:
            callback()
        self._changed = True
