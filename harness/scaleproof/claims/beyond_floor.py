"""Differences that a metric of blocks or pairs of launches may count: those beyond the machine's noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean
from typing import Literal

HowNoiseEnters = Literal["factor", "added", "gain", "inside"]
"""How the floor enters a value: as a factor of it; added to it (a relative difference); as a factor of the ratio of
which it is the gain in %; or the metric itself counts only what lies beyond the floor."""


@dataclass(frozen=True, slots=True)
class FloorRange:
    """A value of a repetition, and from where to where it could lie if whatever is within the noise floor were the
    other way round."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float | FloorRange) -> FloorRange:
        """A plain value has nothing within the floor."""
        return value if isinstance(value, FloorRange) else cls(value, value, value)

    @classmethod
    def mean(cls, ranges: Sequence[FloorRange]) -> FloorRange:
        """Of several, each counting equally."""
        return cls(*(fmean(getattr(each, end) for each in ranges) for end in ("value", "low", "high")))


def wins(groups: Sequence[Sequence[int]]) -> FloorRange:
    """The share of comparisons won beyond the floor, from signs of differences. Nobody has won those within it, and all
    of them could be won. Every group of comparisons counts equally, however many it has."""
    won, undecided = (fmean(signs.count(wanted) / len(signs) for signs in groups) for wanted in (1, 0))
    return FloorRange(won, won, won + undecided)


def orders(values: Sequence[float], floor: float | None) -> list[tuple[int, ...]]:
    """All orders that the floor leaves open, each as the rank of every value: no difference beyond the floor is turned
    round."""
    places = range(len(values))
    larger = [(a, b) for a, b in permutations(places, 2) if sign(values[a], values[b], floor) > 0]
    return [ranks for ranks in permutations(places) if all(ranks[a] > ranks[b] for a, b in larger)]


def sign(ours: float, theirs: float, floor: float | None) -> int:
    """1 where ours is larger by more than the floor (a share), -1 where theirs is, else 0."""
    apart = 1 + (floor or 0.0)
    if ours > theirs * apart:
        return 1
    return -1 if theirs > ours * apart else 0


def could_be(value: float, floor: float, enters: Literal["factor", "added", "gain"]) -> tuple[float, float]:
    """The least and the largest that a value could be if noise alone had moved it by as much as the floor."""
    if enters == "added":
        return value - floor, value + floor
    if enters == "gain":
        low, high = could_be(1 + value / 100, floor, "factor")
        return 100 * (low - 1), 100 * (high - 1)
    low, high = sorted((value / (1 + floor), value * (1 + floor)))
    return low, high
