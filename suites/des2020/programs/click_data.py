"""Made-up clicks: samples with many ids of few fields, drawn by Zipf's law, and labels of a hidden model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

HIDDEN_SCALE = 0.5
"""Spread of the hidden weights: labels are then neither certain nor a coin's."""


@dataclass(frozen=True, slots=True)
class Clicks:
    """`ids` int64 (samples, slots), `values` float32 (samples, slots), `labels` float32 (samples,). Slot j is of field
    j * fields // slots."""

    ids: np.ndarray
    values: np.ndarray
    labels: np.ndarray

    def part(self, rows: slice) -> Clicks:
        """Some of the samples."""
        return Clicks(self.ids[rows], self.values[rows], self.labels[rows])


@dataclass(frozen=True, slots=True)
class Law:
    """How samples are drawn: `ids` in all, `slots` a sample, `fields`, Zipf's `exponent`."""

    ids: int
    slots: int
    fields: int
    exponent: float

    def field_of_slots(self) -> np.ndarray:
        """Of each slot."""
        return np.arange(self.slots) * self.fields // self.slots

    def __post_init__(self) -> None:
        if self.ids < self.slots or self.slots < self.fields:
            raise ValueError(f"{self.ids} ids, {self.slots} slots, {self.fields} fields: each at least the next")


@lru_cache(maxsize=8)
def _cumulative(law: Law) -> np.ndarray:
    """Probabilities of ranks 1 to n, added up; n ids of each field."""
    weights = np.arange(1, law.ids // law.fields + 1, dtype=np.float64) ** -law.exponent
    total: np.ndarray = np.cumsum(weights)
    return total / total[-1]


@lru_cache(maxsize=4)
def _hidden(law: Law, seed: int) -> np.ndarray:
    found: np.ndarray = np.random.default_rng([seed, 1]).standard_normal(law.ids).astype(np.float32) * HIDDEN_SCALE
    return found


def draw(law: Law, seed: int, step: int, samples: int) -> Clicks:
    """A minibatch, which depends on seed and step alone. Ids of a field lie side by side, the most frequent first."""
    random = np.random.default_rng([seed, 2, step])
    ranks = np.searchsorted(_cumulative(law), random.random((samples, law.slots)))
    ids = law.field_of_slots() * (law.ids // law.fields) + ranks
    values = np.full(ids.shape, 1 / np.sqrt(law.slots), np.float32)
    score = (_hidden(law, seed)[ids] * values).sum(axis=1) * np.sqrt(law.slots) / 2
    labels = random.random(samples) < 1 / (1 + np.exp(-score))
    return Clicks(ids, values, labels.astype(np.float32))
