"""Measure of unions of half-open intervals: time in which at least one of them runs, never a sum of lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Intervals = tuple[np.ndarray, np.ndarray]
"""Starts and ends."""
OUTSIDE = -1


def label(layers: Sequence[Intervals], inside: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """Divides time into pieces: edges (n + 1), and for each piece the index of the first layer that covers it,
    `len(layers)` for none, OUTSIDE beyond `inside`.

    Every moment inside has exactly one label, so that lengths by label add up to the union of `inside`, whatever
    overlaps.
    """
    edges = np.unique(np.concatenate([bound for layer in (*layers, inside) for bound in layer]))
    if len(edges) < 2:
        return edges, np.empty(0, np.intp)
    labels = np.full(len(edges) - 1, len(layers), np.intp)
    for index in reversed([number for number, (starts, _) in enumerate(layers) if len(starts)]):
        labels[_covered(edges, *layers[index])] = index
    labels[~_covered(edges, *inside)] = OUTSIDE
    return edges, labels


def _covered(edges: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which pieces between edges lie in at least one of the intervals, all of whose bounds are edges."""
    if np.any(ends < starts):
        raise ValueError("an interval ends before it starts")
    changes = np.zeros(len(edges), np.int64)
    np.add.at(changes, np.searchsorted(edges, starts), 1)
    np.add.at(changes, np.searchsorted(edges, ends), -1)
    return np.cumsum(changes)[:-1] > 0
