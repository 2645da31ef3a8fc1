"""What two ways to agree on the factors of items send: a model of bytes from the law of the data alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

SPREAD, LEAST = 0.8, 10
"""As in programs/planted.py: of the logarithm of a user's interactions, and the fewest."""
TRAIN = 0.8
"""Share of them that is learned from."""
ID_BYTES, FLOAT_BYTES = 8, 4
STEPS = 50
"""More than Newton's method needs."""
QUANTILES = (np.arange(40) + 0.5) / 40
"""Of users by their number of interactions."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`users`, `items`, `mean` interactions of a user, Zipf's `exponent`; `ranks`; `round_users` of a rank between two
    exchanges; `dim` of the factors."""

    users: int
    items: int
    mean: float
    exponent: float
    ranks: int
    round_users: int
    dim: int

    @property
    def rounds(self) -> list[int]:
        """Users of a rank in each round of a pass."""
        of_rank = math.ceil(self.users / self.ranks)
        full, rest = divmod(of_rank, self.round_users)
        return [self.round_users] * full + ([rest] if rest else [])


def all_reduce_bytes(of: Setting) -> float:
    """What a rank sends in a pass: 2 (n - 1) / n times the factors of all items, each round."""
    return len(of.rounds) * 2 * (of.ranks - 1) / of.ranks * of.items * of.dim * FLOAT_BYTES


def server_bytes(of: Setting) -> float:
    """What a rank sends in a pass: ids of the rows that it meets and does not serve, the rows that others ask it for,
    and changes; all of them for (n - 1) / n of the rows met."""
    missed = _missed(of)
    total = 0.0
    for users in sorted(set(of.rounds)):
        rows = float((1 - missed**users).sum()) * (of.ranks - 1) / of.ranks
        each = ID_BYTES * (of.ranks - 1) + rows * (ID_BYTES + 2 * FLOAT_BYTES * of.dim)
        total += of.rounds.count(users) * each
    return total


def _missed(of: Setting) -> np.ndarray:
    """How likely a user does not meet each item (items,). One with c interactions meets item i with 1 - exp(-t p_i),
    where t makes that c in all (an approximation of drawing without replacement)."""
    weights = np.arange(1, of.items + 1, dtype=float) ** -of.exponent
    p = weights / weights.sum()
    drawn = np.exp(np.log(of.mean) - SPREAD**2 / 2 + SPREAD * ndtri(QUANTILES))
    missed = np.zeros(of.items)
    for count in TRAIN * np.clip(drawn, LEAST, of.items // 3):
        missed += np.exp(-_strength(p, float(count)) * p) / len(QUANTILES)
    return missed


def _strength(p: np.ndarray, count: float) -> float:
    """The t with sum of 1 - exp(-t p_i) = count. The sum is concave in t and at most t, so that Newton's steps from
    `count` come from below."""
    t = count
    for _ in range(STEPS):
        kept = np.exp(-t * p)
        short = count - float((1 - kept).sum())
        t += short / float((kept * p).sum())
        if abs(short) < 1e-9 * count:
            break
    return t
