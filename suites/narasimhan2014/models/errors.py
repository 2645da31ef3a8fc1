"""By how much the predicted time of an iteration is off where few processes ran, and what of it each cost decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from inspect import cleandoc
from typing import Any, Literal

import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

from .courses import FREE, Cost, Course, Network, cost_of, course_of, looks_of
from .processes import base_of, solver_iteration_s
from .variants import ORIGINAL, made, names_of, seconds

Zero = Literal["nothing", "elements", "own", "messages"]
"""A cost that a prediction leaves out."""
SOFTWARE_S = 1e-4
"""Of a message between two emulated nodes, beside delay and bytes of the link, chosen by us beforehand, as suite
tensoropt2022 has it for such links."""
MESSAGES = 3
"""Of an iteration, one after the other: an all-reduce and two broadcasts."""


def link_of(case: AnyCase) -> Network | None:
    """As the case sets it."""
    rate, delay = case.value("fabric.link_mbit"), case.value("fabric.link_delay_ms")
    return Network(SOFTWARE_S + (delay or 0) * 1e-3, 8 / (rate * 1e6)) if rate else None


def network_of(record: Record, samples: pd.DataFrame) -> Network | None:
    """The link that the case sets, or else what the messages of an iteration took with nothing to compute."""
    if (link := link_of(record.case)) is not None:
        return link
    rows = columns(record, samples)
    chosen = rows.of("exchange")
    if not len(chosen) or record.case.ranks < 2 or not times_count(record):
        return None
    row, rounds = chosen[0], math.ceil(math.log2(record.case.ranks))
    if not rows.value[row]:  # no exchange was timed alone
        return None
    once = float(rows.end[row] - rows.start[row]) / SECOND / float(rows.value[row])
    return Network(once / MESSAGES / rounds, 0.0)


def without(course: Course, network: Network, zero: Zero) -> tuple[Course, Network]:
    """A prediction with one cost left out."""
    own_s = 0.0 if zero == "own" else course.cost.own_s
    element_s = 0.0 if zero == "elements" else course.cost.element_s
    return replace(course, cost=Cost(own_s, element_s)), FREE if zero == "messages" else network


def iteration_error(zero: Zero) -> Callable[[Record, pd.DataFrame], float | None]:
    """Of the prediction without this cost."""

    def metric(record: Record, samples: pd.DataFrame) -> float | None:
        ours, network = solver_iteration_s(record, samples), network_of(record, samples)
        if ours is None or network is None:
            return None
        name = base_of(record.case)
        cost = cost_of(record, samples, name)
        course = course_of(record, samples, name, cost) if cost else None
        if course is None:
            return None
        course, network = without(course, network, zero)
        return abs(course.seconds(network, record.case.ranks) / course.iterations / ours - 1)

    return metric


def reconstruction_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of the solution's time that reconstructions take, on several ranks (suite narasimhan2014).

    reconstruction_share = time of reconstructions / time of the solution, of the first variant that drops samples
    """
    times, back = seconds(record, samples), seconds(record, samples, "reconstruct")
    return next((back[name] / times[name] for name in back if name in times), None)


def reconstruction_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean time of a reconstruction on several ranks, in s (suite narasimhan2014).

    reconstruction_s = time of reconstructions / reconstructions, of the first variant that drops samples

    gamma of every dropped sample is computed anew from all samples with alpha > 0, whose rows go around a ring.
    """
    curves = record.ranks[0].facts.get("curves", {}) if record.ranks else {}
    for name, took in seconds(record, samples, "reconstruct").items():
        return took / len(curves[name]["reconstructions"]) if name in curves else None
    return None


_SAMPLES, _ITERATIONS, _LONGEST, _EXCHANGES = 1000.0, 2000.0, 10, 1000.0
_PART_ITERATIONS, _PART_ELEMENTS = 1250.0, 6.25e5
_COST = Cost(2e-5, 2e-8)
_LOCAL = Network(2e-5, 0.0)
"""Of a made-up launch."""


def _made_up_error(zero: Zero) -> Callable[[Wanted], MadeUp]:
    """All costs are as above; the measured time is what the wanted error leaves."""

    def make(wanted: Wanted) -> MadeUp:
        case, name = wanted.case, base_of(wanted.case)
        if case.ranks < 2:
            raise ImpossibleValue("one rank sends no messages")
        course = Course(_ITERATIONS, ((0.0, _SAMPLES),), (), _LONGEST, _COST, looks_of(case, name))
        network, elements = link_of(case) or _LOCAL, 2 * _SAMPLES * _ITERATIONS
        left, free = without(course, network, zero)
        took = left.seconds(free, case.ranks) / (1 + possible(wanted.known))
        facts: dict[str, Any] = {
            "curves": {name: {"active": [[0, _SAMPLES]], "reconstructions": []}},
            "data": {"longest": _LONGEST, "features": _LONGEST},
        }
        values = {"iterations": {name: _ITERATIONS}, "part_iterations": {name: _PART_ITERATIONS}}
        launch = made(case, values, {"solve": {name: took}}, facts)
        number = names_of(case).index(name)
        whole_s = _COST.own_s * _ITERATIONS + _COST.element_s * elements
        part_s = _COST.own_s * _PART_ITERATIONS + _COST.element_s * _PART_ELEMENTS
        rounds_s = MESSAGES * math.ceil(math.log2(case.ranks)) * _LOCAL.message_s * _EXCHANGES
        further = (
            Event("alone", 0.0, whole_s, (0,), number, value=elements),
            Event("part", 0.0, part_s, (0,), number, value=_PART_ELEMENTS),
            Event("exchange", 0.0, rounds_s, (0,), number, value=_EXCHANGES),
        )
        return MadeUp((*launch.events, *further), facts=launch.facts)

    return make


def _first_that_drops(case: AnyCase) -> str:
    name = next((each for each in names_of(case) if each != ORIGINAL), None)
    if name is None:
        raise ImpossibleValue("the case drops nothing")
    return name


def _made_up_share(wanted: Wanted) -> MadeUp:
    name = _first_that_drops(wanted.case)
    return made(wanted.case, {}, {"solve": {name: 1.0}, "reconstruct": {name: possible(wanted.known, 0.0, 1.0)}})


def _made_up_reconstruction(wanted: Wanted) -> MadeUp:
    name = _first_that_drops(wanted.case)
    facts = {"curves": {name: {"active": [[0, _SAMPLES]], "reconstructions": [[1, 1]]}}}
    return made(wanted.case, {}, {"reconstruct": {name: possible(wanted.known)}}, facts)


_DOC = """
    predicted = time of the whole solution / iterations, where an iteration takes what it takes beside kernel elements
    and messages, 2 active samples / ranks kernel elements, an all-reduce of 16 B and two broadcasts of a row, each in
    ceil(log2 ranks) messages; a look takes one more all-reduce, and a reconstruction its kernel elements and ranks - 1
    messages around a ring. What an iteration and an element take is from two solutions of rank 0 alone: of all samples,
    and of a quarter of them. A message takes the link's delay, 0.1 ms of software, and bytes; without a stated link,
    what all-reduce and broadcasts took in the same launch with nothing to compute. Measured:
    [solver_iteration_s](solver_iteration_s.md).
    """


def _error(zero: Zero, name: str, what: str) -> Metric:
    return Metric(
        name,
        "fraction",
        "lower",
        launch=iteration_error(zero),
        clocked=True,
        noise="added",
        made_up=_made_up_error(zero),
        range=(0.0, math.inf),
        doc=f"By which share the predicted time of an iteration is off{what} (suite narasimhan2014).\n\n"
        f"{name} = | predicted / measured - 1 |\n\n{cleandoc(_DOC)}",
    )


METRICS = [
    _error("nothing", "solver_iteration_error", ""),
    _error("elements", "solver_iteration_error_no_elements", " where a kernel element takes no time"),
    _error("own", "solver_iteration_error_no_own", " where an iteration takes only elements and messages"),
    _error("messages", "solver_iteration_error_no_messages", " where a message takes no time"),
    Metric(
        "reconstruction_share",
        "fraction",
        "lower",
        launch=reconstruction_share,
        clocked=True,
        made_up=_made_up_share,
    ),
    Metric("reconstruction_s", "s", "lower", launch=reconstruction_s, clocked=True, made_up=_made_up_reconstruction),
]
