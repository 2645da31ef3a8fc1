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
        self._peers, self._size, self._random = list(peers), size, random
        self._drawn: list[list[int]] = []

    def __call__(self) -> Sequence[int]:
        """Ranks, in no order."""
        if self._size >= len(self._peers):
            return self._peers
        while not self._drawn:
            self._draw()
        peers = self._peers
        return [peers[place] for place in self._drawn.pop()]

    def _draw(self) -> None:
        """Small samples have few repetitions, and those that have one are thrown away; of large ones the places of the
        smallest random numbers are taken."""
        count, size = len(self._peers), self._size
        if size * size <= count:
            rows = self._random.integers(count, size=(BLOCK, size)).tolist()
            self._drawn = [row for row in rows if len(set(row)) == size]
        else:
            keys = self._random.random((BLOCK, count))
            self._drawn = np.argpartition(keys, size, axis=1)[:, :size].tolist()
