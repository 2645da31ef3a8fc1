"""What an iteration takes, with its share of a rebuild of the tables, beside a model that counts operations; and from
how many labels on SLIDE's is shorter than that of the full softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import SECOND, Launch, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

from .costs import HIDDEN, Counts, Rates, full_s, slide_s

MODELLED = ("full", "slide")
RATES = ("visit", "adam", "hash", "insert", "flop", "byte", "fixed")
"""Events `rate_...` of a launch (programs/rates.py)."""


def iteration_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of an iteration, with its share of a rebuild of the tables, in s (suite slide2020).

    iteration_s = median timed step + last rebuild / steps from one rebuild to the next

    The constant period of the case stands for the schedule. Arms without tables have no rebuilds; the first rebuild
    also touches new memory.
    """
    case = record.case
    if not isinstance(case, OwnCase) or "period" not in case.options or not times_count(record):
        return None
    rows = columns(record, samples)
    steps, rebuilds = rows.timed("step"), rows.of("rebuild")
    if not len(steps):
        return None
    taken = pd.Series(rows.end[steps] - rows.start[steps]).median()
    built = rows.end[rebuilds[-1]] - rows.start[rebuilds[-1]] if len(rebuilds) else 0
    return float(taken + built / int(case.options["period"])) / SECOND


@dataclass(frozen=True)
class Measured:
    """An iteration of one method with so many labels, s; what its launch counted, and what operations cost in it. None:
    it has no rates."""

    labels: int
    seconds: float
    known: tuple[Counts, Rates] | None


def _measured(block: Sequence[Launch]) -> dict[str, list[Measured]]:
    """By method, ascending in labels."""
    found: dict[str, list[Measured]] = {method: [] for method in MODELLED}
    for launch in block:
        case, seconds = launch.record.case, iteration_s(launch.record, launch.samples)
        if seconds is None or not isinstance(case, OwnCase) or case.options["method"] not in found:
            continue
        measured = Measured(int(case.options["labels"]), seconds, counts_and_rates(launch.record, launch.samples))
        found[str(case.options["method"])].append(measured)
    return {method: sorted(rows, key=lambda row: row.labels) for method, rows in found.items()}


def counts_and_rates(record: Record, samples: pd.DataFrame) -> tuple[Counts, Rates] | None:
    """What an iteration of a launch did, and what operations cost in it."""
    case, rows = record.case, columns(record, samples)
    values = {name: rows.value[rows.of(f"rate_{name}")] for name in RATES}
    rates = Rates(**{name: float(value[0]) for name, value in values.items() if len(value)})
    active, changed = (rows.value[rows.of(event)] for event in ("active", "changed_rows"))
    if not isinstance(case, OwnCase) or not len(active) or not len(changed) or not len(values["fixed"]):
        return None
    of = case.options
    counts = Counts(
        int(of["labels"]), int(of["batch"]), float(active[0]), float(changed[0]), int(of["tables"]), int(of["period"])
    )
    return counts, rates


def _modelled(method: str, rows: Sequence[Measured]) -> dict[int, float]:
    """By labels, what the model says of each iteration with the rates of the launch with the fewest labels."""
    known = [(row.labels, *row.known) for row in rows if row.known]
    model = slide_s if method == "slide" else full_s
    return {labels: model(counts, known[0][2]) for labels, counts, _ in known}


def _advantages(block: Sequence[Launch], modelled: bool = False) -> list[tuple[int, float]]:
    """Labels with the time of the full softmax over SLIDE's."""
    by_labels: dict[str, dict[int, float]] = {}
    for method, rows in _measured(block).items():
        times = _modelled(method, rows) if modelled else {row.labels: row.seconds for row in rows}
        by_labels[method] = {labels: seconds for labels, seconds in times.items() if seconds}
    both = sorted(by_labels["full"].keys() & by_labels["slide"].keys())
    return [(labels, by_labels["full"][labels] / by_labels["slide"][labels]) for labels in both]


def crossing(advantages: Sequence[tuple[int, float]]) -> float | None:
    """Labels at which the ratio passes 1 upwards for the last time, along straight lines of logarithms; the first and
    the last pair of points go on beyond their ends. None where it does not rise through 1."""
    points = [(math.log(labels), math.log(ratio)) for labels, ratio in advantages]
    pairs = list(zip(points, points[1:], strict=False))
    if not pairs:
        return None
    for number, ((x, y), (next_x, next_y)) in reversed(list(enumerate(pairs))):
        slope = (next_y - y) / (next_x - x)
        inside = y <= 0 < next_y
        before, after = number == 0 and y > 0, number == len(pairs) - 1 and next_y <= 0
        if slope > 0 and (inside or before or after):
            return math.exp(x - y / slope)
    return None


def crossover_labels(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Labels from which on an iteration of SLIDE is shorter than one of the full softmax, in one repetition (suite
    slide2020).

    crossover_labels = N at which time of the full softmax / time of SLIDE passes 1

    Between two numbers of labels that were run the logarithm of the ratio is taken as a straight line over that of N;
    outside of them the nearest line goes on. See [iteration_s](iteration_s.md).
    """
    return crossing(_advantages(block))


def modelled_crossover(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Labels from which on the model has SLIDE's iteration shorter than the full softmax's, in one repetition (suite
    slide2020).

    modelled_crossover = N at which modelled time of the full softmax / modelled time of SLIDE passes 1

    The model counts operations (suites/slide2020/models/costs.py), and multiplies them with what each costs alone in
    the launch of the method with the fewest labels. See [crossover_labels](crossover_labels.md).
    """
    return crossing(_advantages(block, modelled=True))


def crossover_error(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """How far the crossover of the model is from the measured one, in one repetition (suite slide2020).

    crossover_error = |modelled_crossover / crossover_labels - 1|

    See [modelled_crossover](modelled_crossover.md) and [crossover_labels](crossover_labels.md).
    """
    measured, modelled = crossing(_advantages(block)), crossing(_advantages(block, modelled=True))
    return None if measured is None or modelled is None else abs(modelled / measured - 1)


def iteration_error(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Mean error of the modelled times of iterations, in one repetition (suite slide2020).

    iteration_error = mean over methods and numbers of labels, but the fewest, of |modelled / measured - 1|

    What operations cost is taken from the launch with the fewest labels. See
    [modelled_crossover](modelled_crossover.md).
    """
    errors = []
    for method, rows in _measured(block).items():
        modelled = _modelled(method, rows)
        errors += [abs(modelled[row.labels] / row.seconds - 1) for row in rows if row.labels in list(modelled)[1:]]
    return fmean(errors) if errors else None


def advantage_growth(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """How SLIDE's advantage grows with the number of labels, in one repetition (suite slide2020).

    advantage_growth = log (r of the most labels / r of the fewest) / log (most / fewest)

    r is the time of an iteration of the full softmax over that of SLIDE. 0: no growth; 1: an iteration of SLIDE takes
    as long with any number of labels, and one of the full softmax in proportion to them.
    """
    found = _advantages(block)
    if len(found) < 2:
        return None
    (fewest, first), (most, last) = found[0], found[-1]
    return math.log(last / first) / math.log(most / fewest)


def _made_up(wanted: Wanted, seconds: float, **rates: float) -> MadeUp:
    case = wanted.case
    if not isinstance(case, OwnCase) or case.options.get("method") not in MODELLED:
        raise ImpossibleValue("the case has no iterations of SLIDE or the full softmax")
    notes = [Event("active", value=0.0), Event("changed_rows", value=0.0)]
    return events(
        Event("step", 0.0, seconds), *notes, *(Event(f"rate_{name}", value=rates.get(name, 0.0)) for name in RATES)
    )


def _per_label(case: AnyCase, seconds: float) -> float:
    """The rate of products with which the full softmax takes so long for each label."""
    return seconds / (6 * int(case.value("options")["batch"]) * HIDDEN)


def _labels(case: AnyCase) -> float:
    return float(case.value("options")["labels"])


def _is_full(case: AnyCase) -> bool:
    return bool(case.value("options").get("method") == "full")


def made_up_iteration(wanted: Wanted) -> MadeUp:
    """Launches whose steps take so long, and that rebuild nothing."""
    if not isinstance(wanted.case, OwnCase) or "period" not in wanted.case.options:
        raise ImpossibleValue("the case has no iterations")
    return events(Event("step", 0.0, possible(wanted.known)))


def made_up_crossover(wanted: Wanted) -> MadeUp:
    """Times in proportion to the labels, and SLIDE's as long as at the crossover; the model says the same."""
    if _is_full(wanted.case):
        return _made_up(wanted, 1e-4 * _labels(wanted.case), flop=_per_label(wanted.case, 1e-4))
    return _made_up(wanted, 1e-4 * possible(wanted.known), fixed=1e-4 * wanted.known)


def made_up_crossover_error(wanted: Wanted) -> MadeUp:
    """A crossover at 10,000 labels, and a model whose crossover is further up."""
    above = 1 + possible(wanted.known)
    if _is_full(wanted.case):
        return _made_up(wanted, 1e-4 * _labels(wanted.case), flop=_per_label(wanted.case, 1e-4))
    return _made_up(wanted, 1.0, fixed=above)


def made_up_iteration_error(wanted: Wanted) -> MadeUp:
    """Iterations of 10 ms, and a model that says more."""
    return _made_up(wanted, 0.01, fixed=0.01 * (1 + possible(wanted.known)))


def made_up_growth(wanted: Wanted) -> MadeUp:
    """An advantage that grows with this power of the labels."""
    seconds = _labels(wanted.case) ** wanted.known if _is_full(wanted.case) else 1.0
    return _made_up(wanted, 0.01 * seconds)


_OF_TIME: dict[str, Any] = {"clocked": True, "noise_of": ("iteration_s",)}
METRICS = [
    Metric("iteration_s", "s", "lower", launch=iteration_s, made_up=made_up_iteration),
    Metric("crossover_labels", "labels", "lower", block=crossover_labels, made_up=made_up_crossover, **_OF_TIME),
    Metric("modelled_crossover", "labels", "lower", block=modelled_crossover, made_up=made_up_crossover, **_OF_TIME),
    Metric(
        "crossover_error",
        "fraction",
        "lower",
        block=crossover_error,
        noise="added",
        made_up=made_up_crossover_error,
        range=(0, math.inf),
        **_OF_TIME,
    ),
    Metric(
        "iteration_error",
        "fraction",
        "lower",
        block=iteration_error,
        noise="added",
        made_up=made_up_iteration_error,
        range=(0, math.inf),
        **_OF_TIME,
    ),
    Metric(
        "advantage_growth",
        "1",
        "higher",
        block=advantage_growth,
        noise="added",
        made_up=made_up_growth,
        range=(-math.inf, math.inf),
        **_OF_TIME,
    ),
]
