"""Routes as arrays that grow: a program in virtual time finds a new route at almost every message."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.simulate.engine.growing import START
from scaleproof.simulate.engine.tables import Routes


class RouteTable:
    """Every route once: links, and the shares of their capacities that a byte/s uses."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        self._first, self._links, self._shares = np.zeros(START, np.int64), np.zeros(START, np.int64), np.zeros(START)
        self.rows = Routes(self._first, self._links, self._shares)
        """The routes so far, with room for more."""
        self.most_hops = 0
        """Links of the longest route."""

    def number(self, links: Sequence[int], shares: Sequence[float]) -> int:
        """The number of a route."""
        key = tuple(links), tuple(shares)
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._numbers) - 1:
            start = int(self._first[number])
            end = start + len(links)
            self._first = _with_room(self._first, number + 2)
            self._links, self._shares = _with_room(self._links, end), _with_room(self._shares, end)
            if self.rows.first is not self._first or self.rows.links is not self._links:
                self.rows = Routes(self._first, self._links, self._shares)
            self._first[number + 1], self._links[start:end], self._shares[start:end] = end, links, shares
            self.most_hops = max(self.most_hops, len(links))
        return number


def _with_room(values: np.ndarray, count: int) -> np.ndarray:
    if count <= len(values):
        return values
    larger = np.zeros(max(2 * len(values), count), values.dtype)
    larger[: len(values)] = values
    return larger
