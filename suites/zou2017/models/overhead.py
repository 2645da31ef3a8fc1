"""Lemma 1 over launches: the overhead of one worker, and the efficiency of several."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

from .durations import median_s
from .lemmas import efficiency


def overhead_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """overhead_ratio = median step / median computation - 1, on one worker

    R_O of Lemma 1 (suite zou2017): what a step takes beyond its computation, as a share of the computation. What is
    overlapped is not in it. Defined on launches with one rank only.
    """
    step, compute = median_s(record, samples, "step"), median_s(record, samples, "compute")
    return step / compute - 1 if step and compute and record.case.ranks == 1 else None


def over_lemma1(launch: Launch, base: Launch) -> float | None:
    """over_lemma1 = (t_1 / t_G / G) / ((1 + R_O) / (1 + G R_O))

    Efficiency measured with G workers over the efficiency that Lemma 1 (suite zou2017) gives for the overhead ratio of
    the one-worker launch of the same repetition. t: median step. 1 is a perfect prediction; what the lemma leaves out
    (barriers, shared caches) makes it smaller.
    """
    base_s, many_s = median_s(base.record, base.samples, "step"), median_s(launch.record, launch.samples, "step")
    ratio, workers = overhead_ratio(base.record, base.samples), launch.record.case.ranks
    if not base_s or not many_s or ratio is None:
        return None
    return base_s / many_s / workers / efficiency(ratio, workers)


METRICS = [
    Metric("overhead_ratio", "1", "lower", launch=overhead_ratio, clocked=True),
    Metric("over_lemma1", "1", None, pair=over_lemma1, clocked=True),
]
