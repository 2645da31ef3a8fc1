"""Measured all-reduces beside what a formula, or the event engine, predicts from the ping-pong of the same launch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import pandas as pd

from scaleproof.claims.made_up import ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.spec.case import AnyCase
from scaleproof.spec.common_case import NATIVE

from . import timings
from .engine import seconds
from .formulas import Costs, of_call
from .timings import LINE

LARGE = 1 << 16
"""Bytes from which a prediction is judged."""
Predict = Callable[[AnyCase, int, Costs], float]
"""What a case's all-reduce of so many bytes takes with these costs of a message, in s."""


def by_formula(case: AnyCase, nbytes: int, costs: Costs) -> float:
    """By the formula of the case's algorithm."""
    return of_call(case.collective, case.ranks)(case.ranks, nbytes, costs)


def without_latency(case: AnyCase, nbytes: int, costs: Costs) -> float:
    """By the formula, with a at zero."""
    return by_formula(case, nbytes, replace(costs, a=0.0))


def without_bytes(case: AnyCase, nbytes: int, costs: Costs) -> float:
    """By the formula, with b at zero."""
    return by_formula(case, nbytes, replace(costs, b=0.0))


def by_engine(case: AnyCase, nbytes: int, costs: Costs) -> float:
    """By the event engine, in which a send goes before its receiver is ready."""
    return _by_engine(case.collective, case.ranks, nbytes, costs, buffered_nbytes(case))


@lru_cache(maxsize=4096)
def _by_engine(collective: str, ranks: int, nbytes: int, costs: Costs, buffer: float) -> float:
    return seconds(pattern_of(collective, "all_reduce", ranks), nbytes, costs, buffer)


def call_s(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Time of an all-reduce of an array of n bytes.

    call_s(n) = median over calls of (the slowest rank's call on n bytes)

    As [collective_latency](collective_latency.md), in a launch that begins with a ping-pong. Suite: collectives.
    """
    return timings.calls(record, samples).get(nbytes)


def largest_error(record: Record, samples: pd.DataFrame, predict: Predict) -> float | None:
    """Largest |predicted - measured| / measured over arrays of at least LARGE bytes."""
    case, costs = record.case, timings.costs(record, samples)
    if costs is None or case.collective == NATIVE:
        return None
    reduced = timings.calls(record, samples)
    errors = [abs(predict(case, nbytes, costs) / took - 1) for nbytes, took in reduced.items() if nbytes >= LARGE]
    return max(errors, default=None)


def made_up_error(wanted: Wanted, predict: Predict) -> MadeUp:
    """All-reduces that take as long as predicted, but at one size less, by this error."""
    case, error = wanted.case, possible(wanted.known)
    sizes = tuple(nbytes for nbytes in case.value("sizes", ()) if nbytes >= LARGE)
    if case.ranks < 2 or not sizes:
        raise ImpossibleValue(f"no exchange of an array of {LARGE} bytes")
    return timings.made_up(
        {nbytes: predict(case, nbytes, LINE) / (1 + error * (nbytes == sizes[0])) for nbytes in sizes}, sizes
    )


def made_up_call(wanted: Wanted) -> MadeUp:
    """An all-reduce of the wanted size that takes so long."""
    nbytes = wanted.nbytes or 0
    return timings.made_up({nbytes: possible(wanted.known, 1e-12)}, (nbytes,))


def _error_metric(name: str, predict: Predict, doc: str) -> Metric:
    return Metric(
        name,
        "fraction",
        "lower",
        launch=partial(largest_error, predict=predict),
        clocked=True,
        noise_of=("call_s",),
        noise="added",
        made_up=partial(made_up_error, predict=predict),
        range=(0, math.inf),
        doc=doc,
    )


METRICS = [
    Metric("call_s", "s", "lower", size=call_s, made_up=made_up_call),
    _error_metric(
        "formula_error",
        by_formula,
        """
        Largest relative error of a formula for an all-reduce, with the costs of a ping-pong in the same launch.

        formula_error = largest of |p - t| / t over arrays of 64 KiB and more; t is a launch's all-reduce, p the formula

        a and b are those of the line a + b n through the one-way times of a ping-pong between two of the nodes, fitted
        by relative errors. The formulas are those of published.yaml; recursive doubling for p that is no power of two
        is MPICH's treatment, with a round before and one after, and a binomial tree is a reduction and a broadcast. g
        is zero: over these links reducing a byte costs less than a hundredth of moving it. Suite: collectives.
        """,
    ),
    _error_metric(
        "formula_error_without_latency",
        without_latency,
        """
        [formula_error](formula_error.md) with a, the latency, at zero.

        A negative control: if this error were small too, nothing would test the formula's term in a.
        """,
    ),
    _error_metric(
        "formula_error_without_bytes",
        without_bytes,
        """
        [formula_error](formula_error.md) with b, the time per byte, at zero.

        A negative control: if this error were small too, nothing would test the formula's term in b.
        """,
    ),
    _error_metric(
        "engine_error",
        by_engine,
        """
        Largest relative error of the event engine for an all-reduce, with the costs of a ping-pong in the same launch.

        engine_error = largest of |p - t| / t over arrays of 64 KiB and more; t is a launch's all-reduce, p the engine's

        As [formula_error](formula_error.md), but p is what the event engine takes for the algorithm's messages on one
        switch, whose links carry 1 / b bytes per second. In the engine messages that share a link share its rate, and
        a send goes before its receiver is ready, as far as the connection can buffer it. The formulas know neither.
        Suite: collectives.
        """,
    ),
]
