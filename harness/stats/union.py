"""Measure of unions of half-open intervals: time in which at least one of them runs, never a sum of lengths."""

from __future__ import annotations

import numpy as np


def merge(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint, sorted intervals with the same union; those that touch become one. ValueError when one ends before it starts."""
    starts, ends = np.asarray(starts), np.asarray(ends)
    if np.any(ends < starts):
        raise ValueError("an interval ends before it starts")
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, reached = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate(([True], starts[1:] > reached[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return starts[opens], reached[closes]


def union_length(starts: np.ndarray, ends: np.ndarray) -> float:
    """Length of the union, in the unit of the inputs."""
    starts, ends = merge(starts, ends)
    return float((ends - starts).sum())


def uncovered_length(starts: np.ndarray, ends: np.ndarray, cover_starts: np.ndarray, cover_ends: np.ndarray) -> float:
    """Length of the union of the first intervals outside the union of the second ones: |A or B| - |B|."""
    both = union_length(np.concatenate((starts, cover_starts)), np.concatenate((ends, cover_ends)))
    return both - union_length(cover_starts, cover_ends)
