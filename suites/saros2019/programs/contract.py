"""What all ways to learn have in common: what they are set to, what they do, and what they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Settings:
    """`dim` of the factors; `initial`: first factors are normal, of both signs, or their absolute values (`positive`);
    `rate`: step; `l2`; `momentum`; `least`, `most`: quantiles of blocks per user outside of which a user is undone (0
    and 1: none); `fixed_most`: a limit in blocks in place of the second, 0: none."""

    dim: int
    initial: str
    rate: float
    l2: float
    momentum: float
    least: float
    most: float
    fixed_most: int


@dataclass(slots=True)
class Work:
    """What was done: steps of the factors, pairs of items compared."""

    updates: int = 0
    pairs: int = 0


class Learner(Protocol):
    """Learns in passes over the training interactions."""

    work: Work

    def one_pass(self) -> float | None:
        """Returns the mean loss before the steps of the pass: None where none is computed, infinite where factors are
        no numbers any more."""

    def scores(self, users: int) -> np.ndarray:
        """Of the first so many users and all items (users, items)."""
