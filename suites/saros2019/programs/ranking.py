"""How well scores rank the items of each user's last part: the usual definitions, and those of the authors' script."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite_programs.interactions import Interactions


@dataclass(frozen=True, slots=True)
class Ranked:
    """The first places of each user that has a click: `hits` bool (users, places), and all its clicks (users,)."""

    hits: np.ndarray
    relevant: np.ndarray


def ranked_own(rows: Interactions, scores: np.ndarray, random: np.random.Generator, places: int = 10) -> Ranked:
    """Each user's own items of `rows` by their scores (n,), the highest first; equal ones in a random order."""
    order = np.lexsort((random.random(len(rows)), -scores, rows.user))
    first, relevant = rows.first, np.bincount(rows.user[rows.clicked], minlength=rows.users)
    place = np.arange(len(rows)) - first[rows.user]
    hits = np.zeros((rows.users, places), bool)
    top = place < places
    hits[rows.user[top], place[top]] = rows.clicked[order][top]
    return Ranked(hits[relevant > 0], relevant[relevant > 0])


def ranked_catalogue(
    train: Interactions, test: Interactions, scores: np.ndarray, random: np.random.Generator, places: int = 10
) -> Ranked:
    """All items that a user has not met in `train`, by scores (users, items); clicks of `test` are hits."""
    users = np.unique(test.user[test.clicked])
    number = np.full(test.users, -1)
    number[users] = np.arange(len(users))
    found = scores[users].astype(float)
    found += 1e-9 * random.random(found.shape)
    known = train.part(np.isin(train.user, users))
    found[number[known.user], known.item] = -np.inf
    clicks = np.zeros(found.shape, bool)
    chosen = test.part(test.clicked)
    clicks[number[chosen.user], chosen.item] = True
    best = np.argpartition(-found, places, axis=1)[:, :places]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(found, best, 1), axis=1), 1)
    return Ranked(np.take_along_axis(clicks, best, 1), clicks.sum(axis=1))


def average_precision(ranked: Ranked, k: int, *, authors: bool = False) -> np.ndarray:
    """AP@k of each user: precision at each hit of the first k places, summed, over min(k, clicks). The authors' script
    divides by the hits among the first k places (SAROS@9ce3670), so that what was missed costs nothing."""
    hits = ranked.hits[:, :k]
    summed = (hits * np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)).sum(axis=1)
    most = np.maximum(hits.sum(axis=1), 1) if authors else np.minimum(ranked.relevant, k)
    found: np.ndarray = summed / most
    return found


def ndcg(ranked: Ranked, k: int, *, authors: bool = False) -> np.ndarray:
    """NDCG@k of each user: a hit at place i gains 1 / log2(i + 1), and the ideal has all clicks first. In the authors'
    script it gains 1 / log2(i) from place 2 on, and the ideal has the hits among all places first (SAROS@9ce3670)."""
    hits = ranked.hits[:, :k]
    place = np.arange(1, hits.shape[1] + 1)
    gains = 1 / np.log2(np.maximum(place, 2) if authors else place + 1)
    best = np.minimum(ranked.hits.sum(axis=1) if authors else ranked.relevant, hits.shape[1])
    ideal = np.concatenate(([0.0], np.cumsum(gains)))[best]
    found: np.ndarray = (hits @ gains) / np.where(ideal > 0, ideal, 1)
    return found


def places_of(scores: np.ndarray, item: int) -> np.ndarray:
    """The place of an item among all, for each user, 1: before all others; scores (users, items)."""
    found: np.ndarray = 1 + (scores > scores[:, item, None]).sum(axis=1)
    return found


def quality(ranked: Ranked, prefix: str = "") -> dict[str, float]:
    """Means over users, by the names of metrics."""
    found = {}
    for k in (5, 10):
        found[f"{prefix}map_at_{k}"] = float(average_precision(ranked, k).mean())
        found[f"{prefix}ndcg_at_{k}"] = float(ndcg(ranked, k).mean())
    return found
