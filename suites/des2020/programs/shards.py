"""The weights-rich part of a recommender: tables of weights by id, of which a worker may hold every n-th, the small
results that they give for a batch, and gradients of these rows.

A sub-operator applied to the ids of one worker gives partial results; their sum over workers is that of all ids (Rong
et al., equation 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from suite_programs.click_data import Clicks

from scaleproof.spec.errors import SpecError


@dataclass(frozen=True, slots=True)
class Form:
    """What a model takes from its tables. `linear`: sum of w x; `pairs`: sums of v x and of |v|^2 x^2; `pooled`: sums
    of v x for each field. `k`: values of v for an id, 0: none."""

    linear: bool
    pairs: bool
    pooled: bool
    k: int
    fields: int

    @property
    def floats(self) -> int:
        """Partial results of a sample."""
        return self.linear + (self.k + 1) * self.pairs + self.fields * self.k * self.pooled

    @property
    def per_id(self) -> int:
        """Values of an id."""
        return self.linear + self.k


class Shard:
    """Rows of ids `first`, `first + every`, ...: `rows` float32 (n, per_id), the linear weight first. `Shard(form, ids,
    0, 1, seed)` holds all."""

    def __init__(self, form: Form, ids: int, first: int, every: int, seed: int) -> None:
        self.form, self.ids, self.first, self.every = form, ids, first, every
        whole = np.random.default_rng([seed, 3]).standard_normal((ids, form.per_id), dtype=np.float32)
        whole *= np.float32(0.01)
        self.rows = np.ascontiguousarray(whole[first::every])

    def place(self, ids: np.ndarray) -> np.ndarray:
        """Of ids that it holds, ascending, in `rows`. SpecError where the table has no such id."""
        if len(ids) and not 0 <= ids[0] <= ids[-1] < self.ids:
            advice = f"; set ids: {ids[-1] + 1} or more" if ids[-1] >= self.ids else ""
            wrong = ids[-1] if advice else ids[0]
            raise SpecError(f"id {wrong}: the table has ids 0 to {self.ids - 1}{advice}")
        found: np.ndarray = (ids - self.first) // self.every
        return found


class Lookup:
    """A batch's own ids of a shard: which they are, once each, and where samples have them."""

    def __init__(self, clicks: Clicks, field_of_slots: np.ndarray, fields: int, first: int = 0, every: int = 1) -> None:
        own = clicks.ids % every == first
        sample, slot = np.nonzero(own)
        self.ids, column = np.unique(clicks.ids[own], return_inverse=True)
        values, count, samples = clicks.values[own], len(self.ids), len(clicks.labels)
        self.by_sample = csr_array((values, (sample, column)), shape=(samples, count))
        self.squares = csr_array((values**2, (sample, column)), shape=(samples, count))
        row = sample * fields + field_of_slots[slot]
        self.by_field = csr_array((values, (row, column)), shape=(samples * fields, count))

    def partial(self, form: Form, rows: np.ndarray) -> np.ndarray:
        """Partial results, float32 (samples, floats). `rows`: of `ids`."""
        samples, parts = self.by_sample.shape[0], []
        v = rows[:, form.linear :]
        if form.linear:
            parts.append(self.by_sample @ rows[:, :1])
        if form.pairs:
            parts += [self.by_sample @ v, self.squares @ (v**2).sum(axis=1, keepdims=True)]
        if form.pooled:
            parts.append((self.by_field @ v).reshape(samples, -1))
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def gradient(self, form: Form, rows: np.ndarray, of_partial: np.ndarray) -> np.ndarray:
        """Gradient of `rows`, from that of the partial results."""
        found, at = np.zeros_like(rows), 0
        v = rows[:, form.linear :]
        if form.linear:
            found[:, :1] = self.by_sample.T @ of_partial[:, :1]
            at = 1
        if form.pairs:
            sums, square = of_partial[:, at : at + form.k], of_partial[:, at + form.k : at + form.k + 1]
            found[:, form.linear :] += self.by_sample.T @ sums + 2 * v * (self.squares.T @ square)
            at += form.k + 1
        if form.pooled:
            pooled = np.ascontiguousarray(of_partial[:, at:]).reshape(-1, form.k)
            found[:, form.linear :] += self.by_field.T @ pooled
        return found


class Gathering:
    """Which rows all samples of a step need: `ids`, int64, of each rank those that it holds, ascending; `longest`: the
    most of any rank; `owner`, `place`, int64 (n,): of each id of `lookup` the rank that holds it, and where among that
    rank's ids it is."""

    def __init__(self, every: np.ndarray, lookup: Lookup, ranks: int) -> None:
        """`every`: ids of all samples, in any order."""
        unique = np.flatnonzero(np.bincount(every.ravel()))  # sorting would take longer than the rest of a step
        owners = unique % ranks
        self.ids = [unique[owners == rank] for rank in range(ranks)]
        self.longest = max(map(len, self.ids))
        places = np.empty(len(unique), np.int64)
        for rank, ids in enumerate(self.ids):
            places[owners == rank] = np.arange(len(ids))
        at = np.searchsorted(unique, lookup.ids)
        self.owner, self.place = owners[at], places[at]
