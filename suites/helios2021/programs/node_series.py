"""Nodes in use every 10 minutes: generated from a daily and a weekly rhythm, or counted from a trace."""

from __future__ import annotations

import numpy as np

from scaleproof.spec.program_options import choice

STEPS_OF_DAY = 144
"""10 minutes each."""
STEP_S = 600.0
LEVEL, DAILY, WEEKLY = 0.82, 0.08, 0.05
"""Shares of all nodes: the mean, and the heights of the two rhythms. The mean is near Fig. 14's 86 %."""
MEMORY, NOISE = 0.97, 0.012
"""Of the noise: a step's correlation with the one before it, and its new part, as a share of all nodes."""


SHAPES = ("varied", "constant", "full", "equal_days")


def generated(total: int, days: int, seed: int, shape: str = "varied") -> np.ndarray:
    """Used nodes (steps,), whole numbers from 0 to `total`. varied: two rhythms and noise. Controls: constant, the mean
    at all times; full, all nodes at all times; equal_days, the daily rhythm alone."""
    count = days * STEPS_OF_DAY
    choice({"shape": shape}, "shape", SHAPES)
    if shape in ("constant", "full"):
        return np.full(count, round((1.0 if shape == "full" else LEVEL) * total))
    if shape == "equal_days":
        turn = 2 * np.pi * (np.arange(count) % STEPS_OF_DAY) / STEPS_OF_DAY
        return np.round(total * (LEVEL + DAILY * np.sin(turn))).astype(np.int64)
    random = np.random.default_rng([14, seed])
    day, week = (2 * np.pi * np.arange(count) / (STEPS_OF_DAY * days_of) for days_of in (1, 7))
    drift = np.empty(count)
    value = 0.0
    for step, new in enumerate(random.normal(0.0, NOISE, count)):
        value = MEMORY * value + new
        drift[step] = value
    used = total * (LEVEL + DAILY * np.sin(day) + WEEKLY * np.sin(week) + drift)
    return np.clip(np.round(used), 0, total).astype(np.int64)


def counted(begins: np.ndarray, ends: np.ndarray, nodes: np.ndarray, first: float, last: float) -> np.ndarray:
    """The most nodes in use within each step of 10 minutes from `first` to `last`, s (steps,)."""
    moments = np.concatenate([begins, ends])
    change = np.concatenate([nodes, -nodes])
    order = np.lexsort((change, moments))
    moments, level = moments[order], np.cumsum(change[order])
    edges = np.arange(first, last + STEP_S, STEP_S)
    before = np.concatenate([[0], level])[np.searchsorted(moments, edges[:-1], side="right")]
    step = np.searchsorted(edges, moments, side="right") - 1
    inside = (step >= 0) & (step < len(before))
    most = before.astype(np.int64)
    np.maximum.at(most, step[inside], level[inside].astype(np.int64))
    return most
