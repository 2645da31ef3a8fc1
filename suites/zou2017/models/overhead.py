"""Lemma 1 over launches: the overhead of one worker, and the efficiency of several."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import Launch, median_duration_s, timed, times_count
from scaleproof.claims.made_up import Event, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

from .lemmas import efficiency


def overhead_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """overhead_ratio = median step / median computation - 1, on one worker

    R_O of Lemma 1 (suite zou2017): the part of a step that is not computation, as a share of the computation. Overhead
    that overlaps with computation is not included. Defined for launches with one rank only.
    """
    step, compute = _median_s(record, samples, "step"), _median_s(record, samples, "compute")
    return step / compute - 1 if step and compute and record.case.ranks == 1 else None


def _median_s(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    return median_duration_s(timed(samples, event)) if times_count(record) else None


def over_lemma1(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """over_lemma1 = (t_1 / t_G / G) / ((1 + R_O) / (1 + G R_O))

    Measured efficiency with G workers over the efficiency that Lemma 1 (suite zou2017) predicts from the overhead ratio
    R_O. t_1 and t_G are the median steps with one and with G workers. R_O is that of the one-worker launch of the same
    repetition. A value of 1 is a perfect prediction. Costs that the lemma leaves out (barriers, shared caches) make it
    smaller.
    """
    base_s, many_s = _median_s(base.record, base.samples, "step"), _median_s(launch.record, launch.samples, "step")
    ratio, workers = overhead_ratio(base.record, base.samples), launch.record.case.ranks
    if not base_s or not many_s or ratio is None:
        return None
    return base_s / many_s / workers / efficiency(ratio, workers)


def made_up_overhead(wanted: Wanted) -> MadeUp:
    """One worker that computes for 1 s of its step."""
    return MadeUp((Event("compute", 0.0, 1.0), Event("step", 0.0, 1.0 + possible(wanted.known))))


def made_up_efficiency(wanted: Wanted) -> MadeUp:
    """A base without overhead, and workers whose efficiency is so many times the 1 that the lemma gives then."""
    if wanted.value is None:
        return made_up_overhead(Wanted(wanted.case, 0.0))
    return MadeUp((Event("step", 0.0, 1.0 / (wanted.case.ranks * possible(wanted.value, 1e-9))),))


METRICS = [
    Metric("overhead_ratio", "1", "lower", launch=overhead_ratio, clocked=True, made_up=made_up_overhead),
    Metric("over_lemma1", "1", None, pair=over_lemma1, clocked=True, noise_of=("step_s",), made_up=made_up_efficiency),
]
