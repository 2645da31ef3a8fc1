"""Cores of a rank's threads: das2016 gives one core of every node to the communication thread; further channels have
a thread each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaleproof.spec.case import AnyCase


@dataclass(frozen=True, slots=True)
class Cores:
    """`communication`: a core for each communication thread; `compute`: cores of the rank's other threads."""

    communication: tuple[int, ...]
    compute: tuple[int, ...]


def neighbours(case: AnyCase, rank: int) -> list[int]:
    """Ranks that share cores with this rank: all ranks of the machine, or under fabric guests all ranks of its node."""
    if not case.plugin("fabric").own_kernels:
        return list(range(case.ranks))
    return [other for other in range(case.ranks) if other * case.nodes // case.ranks == rank * case.nodes // case.ranks]


def split_cores(position: int, ranks: int, threads: int, allowed: Sequence[int], channels: int = 1) -> Cores | None:
    """This rank's equal share of the allowed cores, the last ones for communication; None if a share has fewer than
    `threads` + `channels` cores."""
    share = len(allowed) // ranks
    if share < threads + channels:
        return None
    mine = sorted(allowed)[position * share : (position + 1) * share]
    return Cores(tuple(mine[-channels:]), tuple(mine[:-channels]))
