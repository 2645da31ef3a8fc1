"""Predictions for many processes, and by how much such a prediction is off where few were run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

from .courses import SCALED, Course, Network, Prediction, course_of, prediction_of
from .processes import alone_s, base_of, solver_iteration_s
from .savings import JUDGED
from .variants import ORIGINAL, has, made, names_of, seconds

SOFTWARE_S = 1e-4
"""Of a message between two emulated nodes, beside delay and bytes of the link: as suite tensoropt2022 states it."""


def predicted(value: Callable[[Prediction], float]) -> Callable[[Record, pd.DataFrame], float | None]:
    """A metric of a launch on one rank."""

    def metric(record: Record, samples: pd.DataFrame) -> float | None:
        found = prediction_of(record, samples)
        return None if found is None else value(found)

    return metric


def link_of(case: AnyCase) -> Network | None:
    """As the case sets it."""
    rate, delay = case.value("fabric.link_mbit"), case.value("fabric.link_delay_ms")
    return Network(SOFTWARE_S + (delay or 0) * 1e-3, 8 / (rate * 1e6)) if rate else None


def iteration_error(record: Record, samples: pd.DataFrame) -> float | None:
    """By which share the predicted time of an iteration is off (suite narasimhan2014).

    iteration_error = | predicted / measured - 1 |

    predicted = time of the whole solution / iterations, where an iteration takes 2 active samples / ranks kernel
    elements, an all-reduce of 16 B and two broadcasts of a row, each in ceil(log2 ranks) messages of the link's delay,
    0.1 ms of software, and bytes; and a reconstruction takes its kernel elements and ranks - 1 messages around a ring.
    A kernel element takes what rank 0 took alone. Measured: [solver_iteration_s](solver_iteration_s.md).
    """
    ours, network = solver_iteration_s(record, samples), link_of(record.case)
    if ours is None or network is None:
        return None
    name = base_of(record.case)
    alone = alone_s(record, samples, name)
    course = course_of(record, samples, name, alone[0] / alone[1]) if alone and alone[1] else None
    if course is None:
        return None
    return abs(course.seconds(network, record.case.ranks) / course.iterations / ours - 1)


def reconstruction_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of the solution's time that reconstructions take, on several ranks (suite narasimhan2014).

    reconstruction_share = time of reconstructions / time of the solution, of the first variant that drops samples
    """
    times, back = seconds(record, samples), seconds(record, samples, "reconstruct")
    return next((back[name] / times[name] for name in back if name in times), None)


_SAMPLES, _ITERATIONS, _LONGEST = 1000.0, 2000.0, 10
"""Of a made-up launch."""


def _facts(active: float, used: float) -> dict[str, Any]:
    """Without shrinking, and with so many samples active, of which `used` have alpha > 0 at one reconstruction."""
    shrunk = {"active": [[0, _SAMPLES], [1, active]], "reconstructions": [[_SAMPLES, used]] if used else []}
    original = {"active": [[0, _SAMPLES]], "reconstructions": []}
    return {"curves": {ORIGINAL: original, JUDGED: shrunk}, "data": {"longest": _LONGEST, "features": _LONGEST}}


def _launch(case: AnyCase, took: float, active: float, used: float) -> MadeUp:
    both = (ORIGINAL, JUDGED)
    values = {"iterations": dict.fromkeys(both, _ITERATIONS), "elements": dict.fromkeys(both, 1e6)}
    return made(case, values, {"solve": dict.fromkeys(both, 1e6 * took)}, _facts(active, used))


def _made_up(
    value: Callable[[Prediction], float], of: Callable[[float], tuple[float, float, float]]
) -> Callable[[Wanted], MadeUp]:
    """A launch whose element time, active and used samples, as `of` has them for a number from 0 to 1, give the
    value."""

    def make(wanted: Wanted) -> MadeUp:
        has(wanted.case, ORIGINAL, JUDGED)
        if wanted.case.ranks != 1:
            raise ImpossibleValue("a prediction is from one rank")

        def at(place: float) -> float:
            found = _prediction(*of(place))
            return value(found)

        low, high = 0.0, 1.0
        possible(wanted.known, *sorted((at(low), at(high))))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if (at(middle) < wanted.known) == (at(1.0) > at(0.0)) else (low, middle)
        return _launch(wanted.case, *of(low))

    return make


def _prediction(took: float, active: float, used: float) -> Prediction:
    curves, factor = _facts(active, used)["curves"], SCALED / _SAMPLES
    both = [
        Course(
            _ITERATIONS,
            tuple((a, b) for a, b in curves[name]["active"]),
            tuple((a, b) for a, b in curves[name]["reconstructions"]),
            _LONGEST,
            took,
        ).scaled(factor)
        for name in (ORIGINAL, JUDGED)
    ]
    return Prediction(both[0], both[1])


def _of_gain(place: float) -> tuple[float, float, float]:
    """First ever fewer samples to bring back, then ever fewer active ones."""
    return 1e-6, _SAMPLES * (1 - max(0.0, 1.998 * place - 0.999)), 1e5 * max(0.0, 1 - 2 * place)


def _made_up_error(wanted: Wanted) -> MadeUp:
    name, network = base_of(wanted.case), link_of(wanted.case)
    if network is None or wanted.case.ranks < 2:
        raise ImpossibleValue("the case has no links of a stated rate")
    course = Course(_ITERATIONS, ((0.0, _SAMPLES),), (), _LONGEST, 1e-7)
    took = course.seconds(network, wanted.case.ranks) / (1 + possible(wanted.known))
    curve = {"active": [[0, _SAMPLES]], "reconstructions": []}
    facts = {"curves": {name: curve}, "data": {"longest": _LONGEST, "features": _LONGEST}}
    launch = made(wanted.case, {"iterations": {name: _ITERATIONS}}, {"solve": {name: took}}, facts)
    alone = Event("alone", 0.0, 1.0, (0,), names_of(wanted.case).index(name), value=1e7)
    return MadeUp((*launch.events, alone), facts=launch.facts)


def _made_up_share(wanted: Wanted) -> MadeUp:
    name = next((each for each in names_of(wanted.case) if each != ORIGINAL), None)
    if name is None:
        raise ImpossibleValue("the case drops nothing")
    return made(wanted.case, {}, {"solve": {name: 1.0}, "reconstruct": {name: possible(wanted.known, 0.0, 1.0)}})


_STATED = f"""
    From one launch on one rank: what a kernel element takes, and how many samples are active after each iteration. For
    {SCALED} samples of the same kind, with as many iterations for each sample and the same shares active; on a network
    of 54.55 Gbit/s with 2 us for a message. An iteration takes its rank's kernel elements, an all-reduce of 16 B and
    two broadcasts of a row, each in log2 processes messages; a reconstruction takes its kernel elements and blocks of
    rows around a ring. Processes are as fast as the rank that ran.
    """

METRICS = [
    Metric(
        "iteration_error",
        "fraction",
        "lower",
        launch=iteration_error,
        clocked=True,
        noise="added",
        made_up=_made_up_error,
        range=(0.0, math.inf),
    ),
    Metric(
        "reconstruction_share",
        "fraction",
        "lower",
        launch=reconstruction_share,
        clocked=True,
        made_up=_made_up_share,
    ),
    Metric(
        "predicted_speedup_4096",
        "x",
        "higher",
        launch=predicted(Prediction.speedup),
        clocked=True,
        made_up=_made_up(Prediction.speedup, lambda place: (10 ** (8 * place - 12), 500.0, 0.0)),
        doc=f"""
        Predicted speed-up of 4,096 processes over one, with shrinking (suite narasimhan2014).

        predicted_speedup_4096 = predicted time of one process / predicted time of 4,096, heuristic `{JUDGED}`
        {_STATED}""",
    ),
    Metric(
        "predicted_gain_4096",
        "x",
        "higher",
        launch=predicted(Prediction.gain),
        clocked=True,
        made_up=_made_up(Prediction.gain, _of_gain),
        doc=f"""
        Predicted gain of shrinking on 4,096 processes (suite narasimhan2014).

        predicted_gain_4096 = predicted time without shrinking / predicted time with `{JUDGED}`, on 4,096 processes
        {_STATED}""",
    ),
    Metric(
        "predicted_share_4096",
        "fraction",
        "lower",
        launch=predicted(Prediction.share),
        clocked=True,
        made_up=_made_up(Prediction.share, lambda place: (1e-6, 10.0, 10 ** (6 * place - 3) if place else 0.0)),
        doc=f"""
        Predicted share of reconstructions in the time of 4,096 processes (suite narasimhan2014).

        predicted_share_4096 = predicted time of reconstructions / predicted time of heuristic `{JUDGED}`
        {_STATED}""",
    ),
]
