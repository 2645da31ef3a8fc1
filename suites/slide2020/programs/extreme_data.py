"""Synthetic extreme classification: each label has a sparse prototype, and a sample is a noisy copy of one. Labels are
`independent`, and equally frequent; or `grouped`: those of a group resemble one another, and frequencies follow Zipf's
law."""

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
KINDS = ("independent", "grouped")
IN_GROUP = 50
"""Labels of a group; with fewer labels there is one group."""
SHARED = 20
"""Features of a grouped label's prototype that are its group's, drawn from the 30 of the group's prototype."""


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
def _fill(prototypes: np.ndarray, filled: int, cdf: np.ndarray, seed: int) -> None:
    """Draws what rows lack, in place: each has `filled` different features already."""
    np.random.seed(seed)
    last = np.full(len(cdf), -1, np.int32)
    for label in range(len(prototypes)):
        last[prototypes[label, :filled]] = label
        end = filled
        while end < prototypes.shape[1]:
            feature = _zipf(cdf)
            if last[feature] != label:
                last[feature] = label
                prototypes[label, end] = feature
                end += 1


def _prototypes(kind: str, labels: int, cdf: np.ndarray, seed: int) -> np.ndarray:
    """Features of each label: (labels, IN_PROTOTYPE)."""
    made = np.empty((labels, IN_PROTOTYPE), np.int32)
    if kind == "independent":
        _fill(made, 0, cdf, seed % 2**31)
        return made
    groups = np.empty((max(labels // IN_GROUP, 1), IN_PROTOTYPE), np.int32)
    _fill(groups, 0, cdf, (seed + 1) % 2**31)
    of_label = np.random.default_rng([seed, 3]).permuted(groups[np.arange(labels) % len(groups)], axis=1)
    made[:, :SHARED] = of_label[:, :SHARED]
    _fill(made, SHARED, cdf, seed % 2**31)
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


def _zipf_cdf(count: int) -> np.ndarray:
    """Of numbers 0 to `count` - 1, of which number i has a weight of 1 / (i + 1)."""
    weights = 1 / np.arange(1, count + 1)
    return np.cumsum(weights) / weights.sum()


def make(kind: str, labels: int, train: int, test: int, two: float, seed: int) -> tuple[Samples, Samples]:
    """Training and test samples of one of KINDS. A share `two` of samples has a second label."""
    cdf = _zipf_cdf(FEATURES)
    prototypes = _prototypes(kind, labels, cdf, seed)
    generator = np.random.default_rng([seed, 1])
    return tuple(  # type: ignore[return-value]
        _samples(prototypes, _labels(generator, kind, labels, count, two), cdf, int(generator.integers(2**31)))
        for count in (train, test)
    )


def _labels(generator: np.random.Generator, kind: str, labels: int, count: int, two: float) -> np.ndarray:
    """(count, 2): independent labels are drawn evenly, of grouped ones label i with a weight of 1 / (i + 1)."""
    if kind == "independent":
        drawn = generator.integers(0, labels, (count, 2)).astype(np.int32)
    else:
        cdf = _zipf_cdf(labels)
        drawn = np.minimum(np.searchsorted(cdf, generator.random((count, 2))), labels - 1).astype(np.int32)
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
