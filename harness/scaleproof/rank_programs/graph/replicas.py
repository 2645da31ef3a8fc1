"""Equal parts of a graph: each does the same, with ranks of its own and with neighbours that stand to it as to all
others. One of them then shows what all do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scaleproof.spec.errors import SpecError


@dataclass(frozen=True, eq=False)
class Replicas:
    """`ranks`: a row per replica, its ranks in the same order in each. `shape`: the replicas in their order fill a
    torus of these sides, and a step of all of them along any side changes nothing: (8,) for a ring or for replicas that
    exchange nothing, (2, 2, 2) for neighbours at distances that are powers of two."""

    ranks: np.ndarray
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of replicas."""
        return len(self.ranks)

    @cached_property
    def replica(self) -> np.ndarray:
        """The replica of each rank."""
        return self._of_rank(np.arange(self.count)[:, None])

    @cached_property
    def place(self) -> np.ndarray:
        """The place of each rank in its replica."""
        return self._of_rank(np.arange(self.ranks.shape[1])[None, :])

    def steps(self) -> list[np.ndarray]:
        """For each side of the torus: the rank that each rank becomes by a step along it."""
        numbers, found = np.arange(self.count).reshape(self.shape), []
        for side, length in enumerate(self.shape):
            if length > 1:
                following = np.roll(numbers, -1, axis=side).ravel()
                found.append(self.ranks[following[self.replica], self.place])
        return found

    def seen_from(self, replicas: np.ndarray, viewers: np.ndarray) -> np.ndarray:
        """The replicas that stand to replica 0 as `replicas` to `viewers`."""
        there, here = (np.unravel_index(each, self.shape) for each in (replicas, viewers))
        away = [(one - other) % side for one, other, side in zip(there, here, self.shape, strict=True)]
        return np.ravel_multi_index(away, self.shape)

    def _of_rank(self, values: np.ndarray) -> np.ndarray:
        found = np.empty(self.ranks.size, np.int64)
        found[self.ranks] = np.broadcast_to(values, self.ranks.shape)
        return found


def replicas_of(rows: Sequence[Sequence[int]], shape: Sequence[int] = (), name: str = "replicas") -> Replicas:
    """Replicas that are stated. Raises SpecError, one line that starts with `name`, for rows that are no such parts of
    all ranks, or do not fill their torus."""
    sizes = {len(row) for row in rows}
    if not rows or len(sizes) > 1 or 0 in sizes:
        raise SpecError(f"{name}: replicas have equally many ranks, at least one; these have {sorted(sizes)}")
    ranks, sides = np.array(rows, np.int64), tuple(shape) or (len(rows),)
    if not np.array_equal(np.sort(ranks, axis=None), np.arange(ranks.size)):
        raise SpecError(f"{name}: every rank from 0 to {ranks.size - 1} is in one replica")
    if min(sides) < 1 or int(np.prod(sides)) != len(rows):
        raise SpecError(f"{name}: {len(rows)} replicas do not fill a torus of {' x '.join(map(str, sides))}")
    return Replicas(ranks, sides)


def neighbours(ranks: int, count: int, name: str = "replicas") -> Replicas:
    """`count` replicas of neighbouring ranks, on a ring."""
    if count < 1 or ranks % count:
        raise SpecError(f"{name}: {ranks} ranks are no {count} equal replicas")
    return replicas_of(np.arange(ranks).reshape(count, -1).tolist(), name=name)
