"""Frontiers: sets of costs (memory, time) of which none is as good as another in both, with the choices behind each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

Choice = tuple[str, int]
"""An operator and its configuration."""


@dataclass(frozen=True, eq=False)
class Frontier:
    """`memory` rises strictly along the points, `time` falls strictly. `source`, `left`, `right`: from which of
    `sources` each point is, and from which points of its two frontiers."""

    memory: np.ndarray
    time: np.ndarray
    source: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sources: Sequence[tuple[Frontier | Choice, Frontier | None]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.memory)

    def choices(self, point: int) -> dict[str, int]:
        """The configuration of every operator behind a point."""
        found: dict[str, int] = {}
        left_over: list[tuple[Frontier, int]] = [(self, point)]
        while left_over:
            frontier, number = left_over.pop()
            first, second = frontier.sources[frontier.source[number]]
            if isinstance(first, Frontier):
                left_over.append((first, int(frontier.left[number])))
            elif first[0]:
                found[first[0]] = first[1]
            if second is not None:
                left_over.append((second, int(frontier.right[number])))
        return found


def single(memory: float, time: float, choice: Choice = ("", 0)) -> Frontier:
    """One point. `choice`: with an empty name, of no operator, as a cost between two."""
    nothing = np.zeros(1, np.int64)
    return Frontier(np.array([float(memory)]), np.array([float(time)]), nothing, nothing, nothing, [(choice, None)])


def best_products(pairs: Iterable[tuple[Frontier, Frontier]], grid: float = 0.0) -> Frontier:
    """The union of products: of each pair all sums of a point of one and a point of the other, without those that
    another is as good as. `grid`: of points whose memory lies in the same interval of this relative width only the
    fastest is kept; 0: all."""
    sources = list(pairs)
    memory, time, source, left, right = [], [], [], [], []
    for number, (one, other) in enumerate(sources):
        memory.append(np.add.outer(one.memory, other.memory).ravel())
        time.append(np.add.outer(one.time, other.time).ravel())
        source.append(np.full(len(one) * len(other), number))
        left.append(np.repeat(np.arange(len(one)), len(other)))
        right.append(np.tile(np.arange(len(other)), len(one)))
    all_memory, all_time = np.concatenate(memory), np.concatenate(time)
    kept = reduced(all_memory, all_time, grid)
    origin = [np.concatenate(each)[kept] for each in (source, left, right)]
    return Frontier(all_memory[kept], all_time[kept], origin[0], origin[1], origin[2], sources)


def union(frontiers: Sequence[Frontier], grid: float = 0.0) -> Frontier:
    """All points of several, without those that another is as good as."""
    none = single(0.0, 0.0)
    return best_products([(each, none) for each in frontiers], grid)


def reduced(memory: np.ndarray, time: np.ndarray, grid: float = 0.0) -> np.ndarray:
    """Indices of the points that no other is as good as, by rising memory; of equal points the first. With a `grid`
    each point that is dropped has a kept one that is no slower and has at most 1 + grid times its memory."""
    order = np.lexsort((time, memory))
    fastest = np.minimum.accumulate(time[order])
    kept = order[np.concatenate([[True], time[order][1:] < fastest[:-1]])]
    if grid <= 0 or len(kept) < 2:
        return kept
    with np.errstate(divide="ignore"):
        bins = np.floor(np.log(memory[kept]) / np.log1p(grid))
    last_of_bin = np.concatenate([bins[1:] != bins[:-1], [True]])
    last_of_bin[0] |= memory[kept[0]] == 0
    return kept[last_of_bin]
