"""Random samples of a worker's peers, without replacement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BLOCK = 64
"""Samples that are drawn at a time: one by one they would take ten times as long."""


class PeerSample:
    """Each call gives the next sample of `size` of the peers; every set of so many is equally likely. All of them, or
    none, are drawn from nothing."""

    def __init__(self, peers: Sequence[int], size: int, random: np.random.Generator) -> None:
        self._peers, self._size, self._random = np.array(peers, int), size, random
        self._all = list(peers) if size >= len(peers) else None
        self._drawn: list[list[int]] = []

    def __call__(self) -> Sequence[int]:
        """Ranks, in no order."""
        if self._all is not None:
            return self._all
        while not self._drawn:
            self._drawn = self._peers[self._places()].tolist()
        return self._drawn.pop()

    def _places(self) -> np.ndarray:
        """Of several samples. Small ones have few repetitions, and those that have one are thrown away; of large ones
        the places of the smallest random numbers are taken."""
        count, size = len(self._peers), self._size
        if size * size > count:
            places: np.ndarray = np.argpartition(self._random.random((BLOCK, count)), size, axis=1)[:, :size]
            return places
        drawn = self._random.integers(count, size=(BLOCK, size))
        in_order = np.sort(drawn, axis=1)
        different: np.ndarray = drawn[(in_order[:, 1:] != in_order[:, :-1]).all(axis=1)]
        return different
