"""Time to quality as MLPerf Training scores it: N runs, olympic mean, windows of more runs.

Source: mlcommons/training_policies, training_rules.adoc (d73e20f), section Benchmark Results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DROPPED = 1
"""Runs dropped at each end; UNet3D drops 4."""


@dataclass(frozen=True, slots=True)
class Score:
    """The olympic mean of a result's runs; `value` None when the result is invalid, and why."""

    value: float | None
    why: str
    not_converged: int


def olympic_mean(values: Sequence[float], dropped: int = DROPPED) -> float:
    """Mean without the `dropped` fastest and slowest; infinite values are slowest. ValueError when nothing is left."""
    if len(values) <= 2 * dropped:
        raise ValueError(f"{len(values)} runs leave none when {dropped} are dropped at each end")
    return float(np.mean(np.sort(np.asarray(values, dtype=float))[dropped : len(values) - dropped]))


def score(runs: Sequence[float | None], needed: int, dropped: int = DROPPED) -> Score:
    """Score `needed` runs (s or epochs; None: did not converge) of consecutive windows where there are more: the median
    window, invalid ones infinite.

    Of an even number of windows the slower middle one. A window may have `dropped` runs that did not converge: they
    count as its slowest.
    """
    failed = sum(run is None for run in runs)
    if len(runs) < needed:
        return Score(None, f"{len(runs)} runs, the result needs {needed}", failed)
    costs = [math.inf if run is None else float(run) for run in runs]
    windows = [
        olympic_mean(costs[start : start + needed], dropped) for start in range(len(costs) - needed + 1)
    ]  # infinite where too many failed
    middle = sorted(windows)[len(windows) // 2]
    over = f"{needed} runs" if len(windows) == 1 else f"median of {len(windows)} windows of {needed} runs"
    if math.isinf(middle):
        return Score(None, f"invalid: {over}, {failed} runs did not converge, at most {dropped} may", failed)
    return Score(middle, f"olympic mean of {over}, {dropped} dropped at each end, {failed} did not converge", failed)
