"""Made-up interactions with planted preferences, and bots. Everything follows from the law and the seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite_programs.interactions import Interactions

from scaleproof.spec.program_options import Options, real, whole

SPREAD, LEAST = 0.8, 10
"""Of the logarithm of a user's number of interactions; the fewest that a user has."""
PLANTED_DIM, SHARPNESS = 4, 2.0
"""Directions of taste; standard deviation of its logits, beside a logistic noise."""
LIKED = 0.6
"""Logits that an item gains for each standard deviation of its log popularity: what is popular is liked more."""


@dataclass(frozen=True, slots=True)
class Law:
    """`users`, `items`; `mean` interactions of a user (lognormal), at least LEAST and at most a third of the items;
    Zipf's `exponent` of the items' popularity; `drift`: the angle in rad by which a user's taste turns from the first
    interaction to the last."""

    users: int
    items: int
    mean: float
    exponent: float
    drift: float

    def popularity(self) -> np.ndarray:
        """Of the items, the most popular first; sums to 1 (items,)."""
        weights = np.arange(1, self.items + 1, dtype=float) ** -self.exponent
        found: np.ndarray = weights / weights.sum()
        return found

    def counts(self, random: np.random.Generator) -> np.ndarray:
        """Interactions of each user, int64 (users,)."""
        drawn = random.lognormal(np.log(self.mean) - SPREAD**2 / 2, SPREAD, self.users)
        return np.clip(drawn, LEAST, self.items // 3).astype(np.int64)


def law_of(options: Options) -> Law:
    """Of a case. SpecError names the option that does not do."""
    users, items = whole(options, "users", 1), whole(options, "items", 3 * LEAST)
    mean, exponent = real(options, "mean", LEAST, items / 3), real(options, "exponent", 0)
    return Law(users, items, mean, exponent, real(options, "drift", 0))


def draw(law: Law, seed: int) -> Interactions:
    """Each user sees items by their popularity, each once, and clicks by taste, by popularity and by chance. Item 0 is
    the most popular."""
    random = np.random.default_rng([seed, 11])
    popularity, counts = law.popularity(), law.counts(random)
    order = np.argsort(-(np.log(popularity) + random.gumbel(size=(law.users, law.items))), axis=1)
    user = np.repeat(np.arange(law.users), counts)
    place = np.arange(len(user)) - np.repeat(np.cumsum(counts) - counts, counts)
    item = order[user, place]
    moment = random.random(len(user))
    logits = _logits(law, random, user, item, moment)
    clicked = random.random(len(user)) < 1 / (1 + np.exp(-logits))
    by_time = np.lexsort((moment, user))
    return Interactions(user[by_time], item[by_time], clicked[by_time], law.users, law.items)


def _logits(
    law: Law, random: np.random.Generator, user: np.ndarray, item: np.ndarray, moment: np.ndarray
) -> np.ndarray:
    begin, end = random.standard_normal((2, law.users, PLANTED_DIM))
    tastes = random.standard_normal((law.items, PLANTED_DIM)) / np.sqrt(PLANTED_DIM)
    angle = law.drift * moment[:, None]
    taste = np.cos(angle) * begin[user] + np.sin(angle) * end[user]
    log_popularity = np.log(law.popularity())
    liked = LIKED * (log_popularity - log_popularity.mean()) / log_popularity.std()
    found: np.ndarray = SHARPNESS * (taste * tastes[item]).sum(axis=1)
    return found + liked[item] - liked.mean()


def rare_item(train: Interactions, clicks: int) -> int:
    """The item whose clicks are nearest to so many; of equal ones the first."""
    found = np.bincount(train.item[train.clicked], minlength=train.items)
    return int(np.argmin(np.abs(found - clicks)))


def bots(count: int, blocks: int, target: int, items: int, seed: int) -> Interactions:
    """Users that see an item at random and click the target, so many times each."""
    random = np.random.default_rng([seed, 12])
    others = (target + random.integers(1, items, count * blocks)) % items
    item = np.stack([others, np.full(count * blocks, target)], axis=1).reshape(-1)
    clicked = np.tile([False, True], count * blocks)
    return Interactions(np.repeat(np.arange(count), 2 * blocks), item, clicked, count, items)
