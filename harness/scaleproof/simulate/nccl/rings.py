"""Rings over all GPUs of a node, as NCCL searches them: each uses a link from every GPU to the next one, and no link
carries more than it can."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

Pair = tuple[int, int]
Ring = tuple[int, ...]


def disjoint_rings(links: dict[Pair, int], gpus: int) -> list[Ring]:
    """The most cycles through all GPUs (each listed from GPU 0 on) that use every link at most once; both directions
    of a link carry traffic, so each cycle stands for two rings. Searched exhaustively, for up to about 8 GPUs."""
    best: list[Ring] = []
    most = min(sum(count for pair, count in links.items() if gpu in pair) for gpu in range(gpus)) // 2

    def extend(left: dict[Pair, int], chosen: list[Ring], least: Ring) -> bool:
        """Adds cycles not below `least` in order, so that no set of them is tried twice; True when none is better."""
        nonlocal best
        if len(chosen) > len(best):
            best = list(chosen)
        if len(best) == most:
            return True
        for ring in _cycles(tuple(sorted(left.items())), gpus):
            if ring < least:
                continue
            rest = dict(left)
            for pair in hops(ring):
                rest[pair] -= 1
            if min(rest.values()) < 0:
                continue
            if extend({pair: count for pair, count in rest.items() if count}, [*chosen, ring], ring):
                return True
        return False

    extend({pair: count for pair, count in links.items() if count}, [], ())
    return best


def hops(ring: Ring) -> list[Pair]:
    """The pairs of neighbours in a cycle, the smaller GPU first."""
    return [(min(one, other), max(one, other)) for one, other in zip(ring, (*ring[1:], ring[0]), strict=True)]


@lru_cache(maxsize=4096)
def _cycles(links: tuple[tuple[Pair, int], ...], gpus: int) -> tuple[Ring, ...]:
    """Cycles through all GPUs on links that are left, one per direction."""
    near: dict[int, set[int]] = {gpu: set() for gpu in range(gpus)}
    for (one, other), _ in links:
        near[one].add(other)
        near[other].add(one)

    def walk(path: list[int]) -> Iterator[Ring]:
        if len(path) == gpus:
            if 0 in near[path[-1]] and path[1] < path[-1]:
                yield tuple(path)
            return
        for following in sorted(near[path[-1]] - set(path)):
            yield from walk([*path, following])

    if gpus == 2:
        return ((0, 1),) if near[0] else ()
    return tuple(walk([0]))
