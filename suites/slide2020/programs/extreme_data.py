"""Synthetic extreme classification: each label has a sparse prototype, and a sample is a noisy copy of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

FEATURES = 20_000
IN_PROTOTYPE = 30
"""Features of a prototype, distinct, drawn by Zipf's law with exponent 1."""
DROPPED = 0.4
"""Probability that a sample lacks a feature of its prototype."""
NOISE = 10
"""Features that a sample has beside those of its prototype, by the same law."""


@dataclass(frozen=True)
class Samples:
    """Sparse rows: those of sample i are `indices[starts[i]:starts[i + 1]]`, all with the value `values[i]`, so that
    each row has length 1. `labels`: two columns, -1 where a sample has one label."""

    starts: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.values)


@njit(cache=True)
def _zipf(cdf: np.ndarray) -> int:
    return min(np.searchsorted(cdf, np.random.random()), len(cdf) - 1)


@njit(cache=True)
def _prototypes(labels: int, count: int, cdf: np.ndarray, seed: int) -> np.ndarray:
    np.random.seed(seed)
    made = np.empty((labels, count), np.int32)
    last = np.full(len(cdf), -1, np.int32)
    for label in range(labels):
        filled = 0
        while filled < count:
            feature = _zipf(cdf)
            if last[feature] != label:
                last[feature] = label
                made[label, filled] = feature
                filled += 1
    return made


@njit(cache=True)
def _rows(
    prototypes: np.ndarray, labels: np.ndarray, cdf: np.ndarray, dropped: float, noise: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    np.random.seed(seed)
    count = len(labels)
    starts = np.zeros(count + 1, np.int64)
    indices = np.empty(count * (2 * prototypes.shape[1] + noise), np.int32)
    end = 0
    for row in range(count):
        for label in labels[row]:
            if label >= 0:
                for feature in prototypes[label]:
                    if np.random.random() >= dropped:
                        indices[end] = feature
                        end += 1
        for _ in range(noise):
            indices[end] = _zipf(cdf)
            end += 1
        starts[row + 1] = end
    return starts, indices[:end].copy()


def make(labels: int, train: int, test: int, two: float, seed: int) -> tuple[Samples, Samples]:
    """Training and test samples. Labels are drawn evenly; a share `two` of samples has a second one."""
    weights = 1 / np.arange(1, FEATURES + 1)
    cdf = np.cumsum(weights) / weights.sum()
    prototypes = _prototypes(labels, IN_PROTOTYPE, cdf, seed % 2**31)
    generator = np.random.default_rng([seed, 1])
    return tuple(  # type: ignore[return-value]
        _samples(prototypes, _labels(generator, labels, count, two), cdf, int(generator.integers(2**31)))
        for count in (train, test)
    )


def _labels(generator: np.random.Generator, labels: int, count: int, two: float) -> np.ndarray:
    drawn = generator.integers(0, labels, (count, 2)).astype(np.int32)
    drawn[(generator.random(count) >= two) | (drawn[:, 0] == drawn[:, 1]), 1] = -1
    return drawn


def _samples(prototypes: np.ndarray, labels: np.ndarray, cdf: np.ndarray, seed: int) -> Samples:
    starts, indices = _rows(prototypes, labels, cdf, DROPPED, NOISE, seed)
    lengths = np.diff(starts).astype(np.float32)
    return Samples(starts, indices, 1 / np.sqrt(lengths), labels)


def permuted(samples: Samples, seed: int) -> Samples:
    """The same samples, with the labels of others: nothing can be learned."""
    order = np.random.default_rng([seed, 2]).permutation(len(samples))
    return Samples(samples.starts, samples.indices, samples.values, samples.labels[order])
