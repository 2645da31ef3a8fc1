"""Differences that a metric of blocks or pairs of launches may count: those beyond the machine's noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Share:
    """Shares of the comparisons of a repetition: those won beyond the noise floor, and those within it, which nobody
    has won."""

    won: float
    undecided: float

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]]) -> Share:
        """From signs of differences; every group of comparisons counts equally, however many it has."""
        won, undecided = (fmean(signs.count(wanted) / len(signs) for signs in groups) for wanted in (1, 0))
        return cls(won, undecided)


def sign(ours: float, theirs: float, floor: float | None) -> int:
    """1 where ours is larger by more than the floor (a share), -1 where theirs is, else 0."""
    apart = 1 + (floor or 0.0)
    if ours > theirs * apart:
        return 1
    return -1 if theirs > ours * apart else 0


def ratio(ours: float, theirs: float, floor: float | None) -> float:
    """Ours over theirs; 1 where they differ by no more than the floor: identical arms differ as much."""
    return ours / theirs if sign(ours, theirs, floor) else 1.0
