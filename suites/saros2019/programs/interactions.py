"""Interactions of users with items: what they are, how they are divided by time, and their blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class Interactions:
    """Sorted by user, each user's in the order of time. `user`, `item` int64 (n,), `clicked` bool (n,); `users` and
    `items`: how many there are."""

    user: np.ndarray
    item: np.ndarray
    clicked: np.ndarray
    users: int
    items: int

    def __len__(self) -> int:
        return len(self.user)

    def part(self, chosen: np.ndarray) -> Interactions:
        """Some of the rows, in their order."""
        return replace(self, user=self.user[chosen], item=self.item[chosen], clicked=self.clicked[chosen])

    @property
    def first(self) -> np.ndarray:
        """Row at which each user begins, int64 (users + 1,)."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.user, minlength=self.users))))


def in_order(user: np.ndarray, item: np.ndarray, clicked: np.ndarray, moment: np.ndarray, items: int) -> Interactions:
    """By user and moment; rows of one moment stay in the order given."""
    order = np.lexsort((moment, user))
    return Interactions(user[order], item[order], clicked[order], int(user.max()) + 1, items)


def divided(all_rows: Interactions, train: float) -> tuple[Interactions, Interactions]:
    """The first share `train` of each user's interactions, and the later ones."""
    first = all_rows.first
    place = np.arange(len(all_rows)) - first[all_rows.user]
    early = place < np.floor(train * np.diff(first))[all_rows.user]
    return all_rows.part(early), all_rows.part(~early)


def shuffled(rows: Interactions, random: np.random.Generator) -> Interactions:
    """Each user's interactions in a random order."""
    return rows.part(np.lexsort((random.random(len(rows)), rows.user)))


def joined(first: Interactions, second: Interactions) -> Interactions:
    """Users of the second follow those of the first; both have the same items."""
    return Interactions(
        np.concatenate((first.user, second.user + first.users)),
        np.concatenate((first.item, second.item)),
        np.concatenate((first.clicked, second.clicked)),
        first.users + second.users,
        first.items,
    )


@dataclass(frozen=True, slots=True)
class Blocks:
    """Runs of items without a click that are followed by runs of clicked ones. Block b of user u, first[u] <= b <
    first[u + 1]: item[start[b]:middle[b]], then item[middle[b]:end[b]]. All int64."""

    first: np.ndarray
    start: np.ndarray
    middle: np.ndarray
    end: np.ndarray
    item: np.ndarray

    @property
    def of_user(self) -> np.ndarray:
        """How many each user has."""
        return np.diff(self.first)

    def of_users(self, low: int, high: int) -> slice:
        """Of users low to high - 1."""
        return slice(int(self.first[low]), int(self.first[high]))


def _runs(rows: Interactions) -> np.ndarray:
    """Whether a run begins at each row (n,): of another user, or clicked where the row before was not."""
    change = np.ones(len(rows), bool)
    change[1:] = (rows.user[1:] != rows.user[:-1]) | (rows.clicked[1:] != rows.clicked[:-1])
    return change


def blocks_of(rows: Interactions) -> Blocks:
    """All blocks. Clicks before a user's first item without a click, and items after its last click, are in none."""
    run = np.flatnonzero(_runs(rows))
    ends = np.append(run[1:], len(rows))
    user, clicked = rows.user[run], rows.clicked[run]
    begins = np.flatnonzero(~clicked[:-1] & clicked[1:] & (user[:-1] == user[1:]))
    counts = np.bincount(user[begins], minlength=rows.users)
    first = np.concatenate(([0], np.cumsum(counts)))
    return Blocks(first, run[begins], ends[begins], ends[begins + 1], rows.item)


def blocks_of_clicks(rows: Interactions, random: np.random.Generator) -> Blocks:
    """As in the authors' script: a block for each click, with the latest run of items without one; for clicks before
    the first such item of a user one of its later ones, drawn once (SAROS@9ce3670). Users without any have no block."""
    row, rest = np.arange(len(rows)), np.flatnonzero(~rows.clicked)
    others = np.bincount(rows.user[rest], minlength=rows.users)
    drawn = np.cumsum(others) - others + (random.random(rows.users) * others).astype(np.int64)  # index into `rest`
    click = np.flatnonzero(rows.clicked & (others[rows.user] > 0))
    owner = rows.user[click]
    latest = np.maximum.accumulate(np.where(rows.clicked, -1, row))[click]
    begin = np.maximum.accumulate(np.where(_runs(rows), row, 0))[latest]
    early = latest < rows.first[owner]
    begin[early] = latest[early] = rest[drawn[owner[early]]]
    # A click needs not lie beside its run of items without one: the items are listed again for each click.
    width = latest - begin + 2
    ends = np.cumsum(width)
    starts = ends - width
    index = np.arange(int(width.sum())) + np.repeat(begin - starts, width)
    index[ends - 1] = click
    first = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=rows.users))))
    return Blocks(first, starts, ends - 1, ends, rows.item[index])


def limits(blocks_per_user: np.ndarray, least: float, most: float) -> tuple[int, int]:
    """b and B: quantiles of the blocks per user, as shares; `least` 0 and `most` 1 undo nobody."""
    low = 0 if least <= 0 else int(np.floor(np.quantile(blocks_per_user, least)))
    high = int(np.iinfo(np.int64).max) if most >= 1 else int(np.ceil(np.quantile(blocks_per_user, most)))
    return low, high


@dataclass(frozen=True, slots=True)
class Pairs:
    """Clicked and other items of each user: clicked[first_clicked[u]:first_clicked[u + 1]], other[first_other[u]:...].
    `user`: of each click."""

    user: np.ndarray
    clicked: np.ndarray
    first_clicked: np.ndarray
    other: np.ndarray
    first_other: np.ndarray

    @property
    def count(self) -> int:
        """Pairs of a clicked item and another one of the same user."""
        return int(np.dot(np.diff(self.first_clicked), np.diff(self.first_other)))


def pairs_of(rows: Interactions) -> Pairs:
    """All of them."""
    clicks, rest = rows.part(rows.clicked), rows.part(~rows.clicked)
    return Pairs(clicks.user, clicks.item, clicks.first, rest.item, rest.first)
