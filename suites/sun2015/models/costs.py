"""What a step takes, by form of the job and beside an all-reduce, and what that says about sizes that were not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, Launch, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import value_of
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

from .counts import options_of, workers_of
from .encoding import weights_of

BASE = "all_reduce"
PAPER_LAYER, PAPER_RECORDS, PAPER_MAPS = 784 * 1000, 60_000, 16
"""The first layer of the authors' networks, their default number of records, and the maps of the derived row."""
HOUR = 3600.0


def step_s(record: Record, samples: pd.DataFrame, job: str, layer: int) -> float | None:
    """Median duration of a job's steps of a layer on rank 0, s; None without one."""
    case = options_of(record.case)
    if case is None or not times_count(record):
        return None
    rows = columns(record, samples)
    chosen = rows.timed(f"step.{job}")
    numbers = range(layer * case.iterations, (layer + 1) * case.iterations)
    chosen = chosen[(rows.rank[chosen] == 0) & np.isin(rows.step[chosen], list(numbers))]
    return float(np.median(rows.end[chosen] - rows.start[chosen])) / SECOND if len(chosen) else None


def epoch_s(record: Record, samples: pd.DataFrame, job: str) -> float | None:
    """A step of every layer, s: the sum of the layers' medians; None where a layer has no step."""
    case = options_of(record.case)
    if case is None:
        return None
    found = [step_s(record, samples, job, layer) for layer in range(layers_of(case))]
    known = [seconds for seconds in found if seconds is not None]
    return sum(known) if len(known) == len(found) else None


def layers_of(case: OwnCase) -> int:
    """How many machines a case trains."""
    return len(weights_of(str(case.options["layers"])))


def naive_epoch_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of an epoch as jobs of Spark with a pair per weight and image, in s (suite sun2015).

    naive_epoch_s = sum over layers of the median step on rank 0

    A step is what the driver waits for: weights to the workers, maps, shuffle, reduction, and the sums back. A step of
    each layer before them is not timed.
    """
    return epoch_s(record, samples, "naive")


def combiner_epoch_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of an epoch as jobs of Spark whose maps add up their pairs before they shuffle, in s (suite sun2015). See
    [naive_epoch_s](naive_epoch_s.md)."""
    return epoch_s(record, samples, "combiner")


def in_mapper_epoch_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of an epoch as jobs of Spark whose maps add up their images before there are pairs, in s (suite sun2015).
    See [naive_epoch_s](naive_epoch_s.md)."""
    return epoch_s(record, samples, "in_mapper")


def all_reduce_epoch_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of the same epoch over an all-reduce, in s (suite sun2015). See [naive_epoch_s](naive_epoch_s.md)."""
    return epoch_s(record, samples, BASE)


def _speedup(job: str) -> Callable[[Sequence[Launch], float | None], float | None]:
    def ratio(block: Sequence[Launch], _floor: float | None = None) -> float | None:
        found = {workers_of(launch.record.case): epoch_s(launch.record, launch.samples, job) for launch in block}
        one, two = found.get(1), found.get(2)
        return one / two if one and two else None

    return ratio


_SPEEDUP = """How many times as fast an epoch {form} is on two workers as on one, in one repetition (suite sun2015).

    {job}_speedup = [{job}_epoch_s]({job}_epoch_s.md) on one worker / that on two

    The driver and all workers share the cores of one machine."""


def _over(job: str) -> Callable[[Record, pd.DataFrame], float | None]:
    def ratio(record: Record, samples: pd.DataFrame) -> float | None:
        ours, base = epoch_s(record, samples, job), epoch_s(record, samples, BASE)
        return ours / base if ours is not None and base else None

    return ratio


_OVER = """How many times as long an epoch takes as jobs of Spark{form} as over an all-reduce (suite sun2015).

    {job}_over_all_reduce = [{job}_epoch_s]({job}_epoch_s.md) / [all_reduce_epoch_s](all_reduce_epoch_s.md)

    Both train the same weights on the same images, nodes and links in one launch, the all-reduce before Spark starts.
    The start of the engine is not in it. It depends on the images of a step, since a job has a cost of its own."""


def start_in_epochs(record: Record, samples: pd.DataFrame) -> float | None:
    """How many epochs over an all-reduce the start of Spark takes: master, workers, driver and executors (suite
    sun2015).

    start_in_epochs = time from the first process to the last executor / [all_reduce_epoch_s](all_reduce_epoch_s.md)

    Spark's processes read an archive of the classes that they load. It is written before this time begins; a launch
    without it has no value.
    """
    if not times_count(record) or value_of(record, samples, "class_archive") != 1:
        return None
    rows, base = columns(record, samples), epoch_s(record, samples, BASE)
    found = rows.timed("start_up")
    return float(rows.end[found[0]] - rows.start[found[0]]) / SECOND / base if len(found) and base else None


def pairs_of(case: OwnCase, layer: int) -> float:
    """Of a naive step of a layer, for each worker."""
    return weights_of(str(case.options["layers"]))[layer] * int(case.options["images"]) / workers_of(case)


def pair_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of a worker for a pair of the first layer, s: what the naive step takes beyond one with in-mapper combining,
    which has all that a job takes but the pairs. None where noise leaves nothing."""
    case = options_of(record.case)
    naive, fixed = (step_s(record, samples, job, 0) for job in ("naive", "in_mapper"))
    if case is None or naive is None or fixed is None or naive <= fixed:
        return None
    return (naive - fixed) / pairs_of(case, 0)


def pair_time_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the predicted time of the second layer's naive step is from the measured one (suite sun2015).

    pair_time_error = |predicted / measured - 1|
    predicted = second layer's step with in-mapper combining + pairs of a worker x time per pair of the first layer

    The time per pair is what the first layer's naive step takes beyond its step with in-mapper combining; a launch
    in which that is nothing has no value. The same model predicts the paper's own sizes:
    [naive_epoch_hours](naive_epoch_hours.md).
    """
    case, each = options_of(record.case), pair_s(record, samples)
    measured, fixed = (step_s(record, samples, job, 1) for job in ("naive", "in_mapper"))
    if case is None or each is None or fixed is None or not measured:
        return None
    return abs((fixed + pairs_of(case, 1) * each) / measured - 1)


def naive_epoch_hours(record: Record, samples: pd.DataFrame) -> float | None:
    """Predicted hours of an epoch of the paper's first layer, 784-1000 with 60,000 records, as naive job of Spark on 16
    workers with a core each like those of the launch (suite sun2015).

    naive_epoch_hours = 784 x 1000 x 60,000 pairs x time per pair in the launch's first layer / 16 workers

    What a job takes beside its pairs is less than a second of it. Links and disks are not in it beyond their share of
    the measured time. [pair_time_error](pair_time_error.md) is how far this model is off at the size that runs.
    """
    found = pair_s(record, samples)
    return None if found is None else PAPER_LAYER * PAPER_RECORDS * found / PAPER_MAPS / HOUR


def _epoch(case: AnyCase, job: str, seconds: float) -> list[Event]:
    """Steps of a job that take so long together, as many in each layer."""
    found = options_of(case)
    if found is None:
        raise ImpossibleValue("the case has no job of Spark")
    layers = layers_of(found)
    steps = range(0, layers * found.iterations, found.iterations)
    return [Event(f"step.{job}", 0.0, seconds / layers, ranks=(0,), step=step) for step in steps]


def _made_up_epoch(job: str) -> Callable[[Wanted], MadeUp]:
    """Launches whose epoch takes so many s."""
    return lambda wanted: events(*_epoch(wanted.case, job, possible(wanted.known)))


def _made_up_over(job: str, unit: float = 1e-3) -> Callable[[Wanted], MadeUp]:
    """Launches whose epochs take so many ms, beside one of 1 ms."""

    def made(wanted: Wanted) -> MadeUp:
        ours = _epoch(wanted.case, job, possible(wanted.known) * unit)
        return events(*ours, *_epoch(wanted.case, BASE, unit))

    return made


def made_up_start(wanted: Wanted) -> MadeUp:
    """Launches whose start takes so many ms, beside an epoch of 1 ms."""
    start = Event("start_up", 0.0, possible(wanted.known) * 1e-3, ranks=(0,))
    return events(start, Event("class_archive", value=1.0, ranks=(0,)), *_epoch(wanted.case, BASE, 1e-3))


def _made_up_speedup(job: str) -> Callable[[Wanted], MadeUp]:
    """Launches on one worker that take so many s, beside one of 1 s on two."""

    def made(wanted: Wanted) -> MadeUp:
        seconds = possible(wanted.known) if workers_of(wanted.case) == 1 else 1.0
        return events(*_epoch(wanted.case, job, seconds))

    return made


def _layers(case: AnyCase, *pair_times: float) -> MadeUp:
    """Launches whose naive steps take these times per pair, by layer, and whose jobs take no time beside."""
    found = options_of(case)
    if found is None:
        raise ImpossibleValue("the case has no job of Spark")
    steps = list[Event]()
    for layer, each in enumerate(pair_times):
        number = layer * found.iterations
        steps.append(Event("step.naive", 0.0, each * pairs_of(found, layer), ranks=(0,), step=number))
        steps.append(Event("step.in_mapper", ranks=(0,), step=number))
    return events(*steps)


def made_up_error(wanted: Wanted) -> MadeUp:
    """Launches whose pairs take longer in the first layer."""
    return _layers(wanted.case, 1e-6 * (1 + possible(wanted.known)), 1e-6)


def made_up_hours(wanted: Wanted) -> MadeUp:
    """Launches whose time per pair makes an epoch so long."""
    return _layers(wanted.case, possible(wanted.known) * HOUR * PAPER_MAPS / PAPER_LAYER / PAPER_RECORDS)


METRICS = [
    *(
        Metric(f"{job}_epoch_s", "s", "lower", launch=function, made_up=_made_up_epoch(job))
        for job, function in (
            ("naive", naive_epoch_s),
            ("combiner", combiner_epoch_s),
            ("in_mapper", in_mapper_epoch_s),
            (BASE, all_reduce_epoch_s),
        )
    ),
    *(
        Metric(
            f"{job}_speedup",
            "x",
            "higher",
            block=_speedup(job),
            made_up=_made_up_speedup(job),
            range=(0.0, math.inf),
            noise_of=(f"{job}_epoch_s",),
            clocked=True,
            doc=_SPEEDUP.format(form=form, job=job),
        )
        for job, form in (("naive", "in the naive form"), ("combiner", "with a combiner"))
    ),
    *(
        Metric(
            f"{job}_over_all_reduce",
            "x",
            "lower",
            launch=_over(job),
            made_up=_made_up_over(job),
            clocked=True,
            doc=_OVER.format(form=form, job=job),
        )
        for job, form in (
            ("naive", " with a pair per weight and image"),
            ("combiner", " with a combiner"),
            ("in_mapper", " whose maps add up their images"),
        )
    ),
    Metric("start_in_epochs", "epochs", "lower", launch=start_in_epochs, made_up=made_up_start, clocked=True),
    Metric(
        "pair_time_error",
        "fraction",
        "lower",
        launch=pair_time_error,
        made_up=made_up_error,
        clocked=True,
        range=(0.0, math.inf),
    ),
    Metric("naive_epoch_hours", "h", "lower", launch=naive_epoch_hours, made_up=made_up_hours, clocked=True),
]
