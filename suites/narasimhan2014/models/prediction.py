"""Predictions for many processes, from a launch on one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

from .courses import LOOKS, SCALED, Cost, Course, Prediction, of_processes, prediction_of
from .savings import JUDGED
from .variants import ORIGINAL, has, made, names_of

MOST = LOOKS[-1]


def predicted(value: Callable[[Prediction], float], processes: int) -> Callable[[Record, pd.DataFrame], float | None]:
    """A metric of a launch on one rank."""

    def metric(record: Record, samples: pd.DataFrame) -> float | None:
        found = prediction_of(record, samples, processes)
        return None if found is None else value(found)

    return metric


_SAMPLES, _ITERATIONS, _LONGEST = 1000.0, 2000.0, 10
_ELEMENTS, _PART_ITERATIONS, _PART_ELEMENTS = 4e6, 1250.0, 6.25e5
"""Of a made-up launch, on all samples and on a quarter of them."""


def _active(active: float) -> list[list[float]]:
    return [[0, _SAMPLES], [1, active]]


def _launch(case: AnyCase, name: str, took: float, active: float, used: float) -> MadeUp:
    """Without shrinking, and with so many samples active, of which `used` have alpha > 0 at one reconstruction."""
    shrunk = {"active": _active(active), "reconstructions": [[_SAMPLES, used]] if used else []}
    curves = {ORIGINAL: {"active": [[0, _SAMPLES]], "reconstructions": []}, name: shrunk}
    facts: dict[str, Any] = {"curves": curves, "data": {"longest": _LONGEST, "features": _LONGEST}}
    both = (ORIGINAL, name)
    values = {
        "iterations": dict.fromkeys(both, _ITERATIONS),
        "elements": dict.fromkeys(both, _ELEMENTS),
        "part_iterations": {ORIGINAL: _PART_ITERATIONS},
    }
    launch = made(case, values, {"solve": dict.fromkeys(both, _ELEMENTS * took)}, facts)
    number = names_of(case).index(ORIGINAL)
    part = Event("part", 0.0, _PART_ELEMENTS * took, (0,), number, value=_PART_ELEMENTS)
    return MadeUp((*launch.events, part), facts=launch.facts)


def _prediction(processes: int, took: float, active: float, used: float) -> Prediction:
    cost, factor = Cost(0.0, took), SCALED / _SAMPLES
    curve = tuple((a, b) for a, b in _active(active))
    original = Course(_ITERATIONS, ((0.0, _SAMPLES),), (), _LONGEST, cost)
    shrunk = Course(_ITERATIONS, curve, ((_SAMPLES, used),) if used else (), _LONGEST, cost, processes)
    return Prediction(original.scaled(factor), shrunk.scaled(factor), processes)


def _made_up(
    value: Callable[[Prediction], float], processes: int, of: Callable[[float], tuple[float, float, float]]
) -> Callable[[Wanted], MadeUp]:
    """A launch whose element time, active and used samples, as `of` has them for a number from 0 to 1, give the
    value."""

    def make(wanted: Wanted) -> MadeUp:
        name = of_processes(wanted.case, processes)
        has(wanted.case, ORIGINAL, name)
        if wanted.case.ranks != 1:
            raise ImpossibleValue("a prediction is from one rank")

        def at(place: float) -> float:
            return value(_prediction(processes, *of(place)))

        low, high = 0.0, 1.0
        possible(wanted.known, *sorted((at(low), at(high))))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if (at(middle) < wanted.known) == (at(1.0) > at(0.0)) else (low, middle)
        return _launch(wanted.case, name, *of(low))

    return make


def _of_speedup(place: float) -> tuple[float, float, float]:
    """Ever slower elements, of ever fewer active samples, and ever fewer samples to bring back."""
    return 10 ** (8 * place - 12), 1 + 998 * (1 - place), 1e5 * (1 - place) ** 4


def _of_gain(place: float) -> tuple[float, float, float]:
    """First ever fewer samples to bring back, then ever fewer active ones."""
    return 1e-6, _SAMPLES * (1 - max(0.0, 1.998 * place - 0.999)), 1e5 * max(0.0, 1 - 2 * place)


_STATED = f"""
    From one launch on one rank: what an iteration and a kernel element take, from solutions of all samples and of a
    quarter of them, and how many samples are active after each iteration, with the looks of so many processes. For
    {SCALED:,} samples of the same kind, with as many iterations for each sample and the same shares active; on the
    network of clusters/fdr.yaml with 1 us of software for a message. An iteration takes what it took beside elements,
    its rank's kernel elements, an all-reduce of 16 B and two broadcasts of a row, each in log2 processes messages; a
    look takes one more all-reduce, a reconstruction its kernel elements and blocks of rows around a ring. Processes are
    as fast as the rank that ran.
    """


def _page(text: str) -> str:
    """Of a metric: this, and what all predictions have in common."""
    return f"{cleandoc(text)}\n\n{cleandoc(_STATED)}"


def _speedup(processes: int) -> Metric:
    return Metric(
        f"predicted_speedup_{processes}",
        "x",
        "higher",
        launch=predicted(Prediction.speedup, processes),
        clocked=True,
        predicts=True,
        made_up=_made_up(Prediction.speedup, processes, _of_speedup),
        doc=_page(f"""
        Predicted speed-up of {processes:,} processes with shrinking over one without (suite narasimhan2014).

        predicted_speedup = predicted time of one process without shrinking / predicted time of {processes:,}, heuristic
        `{JUDGED}`
        """),
    )


METRICS = [
    *(_speedup(processes) for processes in LOOKS),
    Metric(
        f"predicted_gain_{MOST}",
        "x",
        "higher",
        launch=predicted(Prediction.gain, MOST),
        clocked=True,
        predicts=True,
        made_up=_made_up(Prediction.gain, MOST, _of_gain),
        doc=_page(f"""
        Predicted gain of shrinking on {MOST:,} processes (suite narasimhan2014).

        predicted_gain = predicted time without shrinking / predicted time with `{JUDGED}`, on {MOST:,} processes
        """),
    ),
    Metric(
        f"predicted_share_{MOST}",
        "fraction",
        "lower",
        launch=predicted(Prediction.share, MOST),
        clocked=True,
        predicts=True,
        made_up=_made_up(Prediction.share, MOST, lambda place: (1e-6, 10.0, 10 ** (6 * place - 3) if place else 0.0)),
        doc=_page(f"""
        Predicted share of reconstructions in the time of {MOST:,} processes (suite narasimhan2014).

        predicted_share = predicted time of reconstructions / predicted time of heuristic `{JUDGED}`
        """),
    ),
]
