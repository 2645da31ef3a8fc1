"""What a launch counted beside its formulas, and how near its weights are to those of one process."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible, reporting
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import value_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

from .encoding import map_bytes, map_pairs, shares, weights_of

FORMS = ("naive", "combiner", "in_mapper")
KILLED = "killed"


def options_of(case: AnyCase) -> OwnCase | None:
    """The case, where its program is one of Spark's jobs."""
    return case if isinstance(case, OwnCase) and "maps" in case.options else None


def workers_of(case: AnyCase) -> int:
    """Processes of Spark that compute: one where it has no workers."""
    found = options_of(case)
    return 1 if found is None else max(int(found.options["workers"]), 1)


def epochs_of(case: OwnCase, job: str) -> int:
    """Of each layer; the job in which a worker is killed has one."""
    return 1 if job == KILLED else case.iterations


def pairs_by_formula(case: OwnCase, job: str) -> int:
    """That the mappers of a job make; those of a combiner are made as in the naive form, and added up then."""
    of, combined = case.options, job == "in_mapper"
    divided, layers = shares(int(of["images"]), int(of["maps"])), weights_of(str(of["layers"]))
    return epochs_of(case, job) * sum(map_pairs(images, size, combined) for images in divided for size in layers)


def bytes_by_formula(case: OwnCase, job: str) -> int:
    """That the maps of a job write."""
    of, combined = case.options, job in ("in_mapper", "combiner")
    divided, layers = shares(int(of["images"]), int(of["maps"])), weights_of(str(of["layers"]))
    reducers = int(of["reducers"])
    return case.iterations * sum(map_bytes(images, size, combined, reducers) for images in divided for size in layers)


def _largest_share(
    record: Record, samples: pd.DataFrame, event: str, formula: Callable[[OwnCase, str], float]
) -> float | None:
    """Largest distance of a count from its formula over the forms of the job, as a share."""
    case = options_of(record.case)
    if case is None:
        return None
    counted = {job: value_of(record, samples, f"{event}.{job}") for job in FORMS}
    found = [abs(value / formula(case, job) - 1) for job, value in counted.items() if value is not None]
    return max(found) if found else None


def pairs_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far pairs of mappers are from their number by formula, the worst form of the job (suite sun2015).

    pairs_error = max over forms of |pairs / formula - 1|

    An accumulator of Spark counts what the mappers make. By formula it is weights x images, or weights x maps where
    images are added up in the mapper.
    """
    return _largest_share(record, samples, "pairs", pairs_by_formula)


def shuffle_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the bytes that Spark shuffles are from those by formula, the worst form of the job (suite sun2015).

    shuffle_error = max over forms of |bytes / formula - 1|

    Spark counts the bytes that its maps write, without compression; the formula is that of
    [shuffled_gib](shuffled_gib.md).
    """
    return _largest_share(record, samples, "bytes", bytes_by_formula)


def shuffle_saved(record: Record, samples: pd.DataFrame) -> float | None:
    """How many times as many bytes the naive form shuffles as one that adds up images in the mapper (suite sun2015).

    shuffle_saved = bytes of the naive form / bytes with in-mapper combining
    """
    naive, combined = (value_of(record, samples, f"bytes.{job}") for job in ("naive", "in_mapper"))
    return naive / combined if naive is not None and combined else None


def combiner_saved(record: Record, samples: pd.DataFrame) -> float | None:
    """How many times as many bytes the naive form shuffles as one with a combiner (suite sun2015).

    combiner_saved = bytes of the naive form / bytes with a combiner
    """
    naive, combined = (value_of(record, samples, f"bytes.{job}") for job in ("naive", "combiner"))
    return naive / combined if naive is not None and combined else None


def remote_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the share of shuffled bytes that comes from other nodes is from 1 - 1 / workers, the worst form of the
    job (suite sun2015). Spark counts both kinds of bytes at its reducers."""
    expected = 1 - 1 / workers_of(record.case)
    found = [value_of(record, samples, f"remote.{job}") for job in FORMS]
    known = [abs(value - expected) for value in found if value is not None]
    return max(known) if known else None


def weight_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest distance of a weight from that of one process without an engine, over all engines of the launch but a job
    whose worker is killed (suite sun2015).

    weight_difference = max over engines and layers of max |W - W'| / max |W'|

    The serial step computes the whole batch as one product of matrices, with all decimals.
    """
    jobs = ("all_reduce", *FORMS)
    found = [value_of(record, samples, f"difference.{job}") for job in jobs]
    known = [value for value in found if value is not None]
    return max(known) if known else None


def killed_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """[weight_difference](weight_difference.md) of the job in which a worker was killed (suite sun2015)."""
    return value_of(record, samples, f"difference.{KILLED}")


def lost_tasks(record: Record, samples: pd.DataFrame) -> float | None:
    """Tasks that failed in the job in which a worker was killed, as Spark's event log says (suite sun2015)."""
    return value_of(record, samples, f"lost.{KILLED}")


def pairs_again(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of a job's pairs that were made once more after a worker was killed (suite sun2015).

    pairs_again = pairs / formula of one naive epoch - 1

    What the killed worker had written for the reducers is lost with it, so its maps run again.
    """
    case, found = options_of(record.case), value_of(record, samples, f"pairs.{KILLED}")
    return None if case is None or found is None else found / pairs_by_formula(case, KILLED) - 1


def wire_over_all_reduce(record: Record, samples: pd.DataFrame) -> float | None:
    """How many times as many bytes rank 0's links carry for a job with in-mapper combining as for the same training
    over an all-reduce (suite sun2015).

    wire_over_all_reduce = bytes sent and received on rank 0's interfaces, job over all-reduce

    The kernel counts both. A job's also hold weights to the workers, tasks, results, and what Spark says beside them.
    """
    ours, base = (value_of(record, samples, f"wire.{job}") for job in ("in_mapper", "all_reduce"))
    return ours / base if ours is not None and base else None


def _of_formula(event: str, formula: Callable[[OwnCase, str], float]) -> Callable[[Wanted], MadeUp]:
    def made(wanted: Wanted) -> MadeUp:
        case = options_of(wanted.case)
        if case is None:
            raise ImpossibleValue("the case has no job of Spark")
        factor = 1 + possible(wanted.known)
        return events(*(Event(f"{event}.{job}", value=factor * formula(case, job), ranks=(0,)) for job in FORMS))

    return made


def made_up_remote(wanted: Wanted) -> MadeUp:
    """Launches whose share is too small by the value, or too large."""
    expected, off = 1 - 1 / workers_of(wanted.case), possible(wanted.known, 0, 1)
    share = expected - off if off <= expected else expected + off
    return events(Event("remote.naive", value=possible(share, 0, 1), ranks=(0,)))


def _made_up_ratio(over: str, under: str) -> Callable[[Wanted], MadeUp]:
    return lambda wanted: events(Event(over, value=possible(wanted.known), ranks=(0,)), Event(under, value=1.0))


def made_up_again(wanted: Wanted) -> MadeUp:
    """Launches with so many more pairs."""
    case = options_of(wanted.case)
    if case is None:
        raise ImpossibleValue("the case has no job of Spark")
    pairs = pairs_by_formula(case, KILLED) * (1 + possible(wanted.known, -1))
    return events(Event(f"pairs.{KILLED}", value=pairs, ranks=(0,)))


_OPEN = (0.0, math.inf)
METRICS = [
    Metric(
        "pairs_error",
        "fraction",
        "lower",
        launch=pairs_error,
        made_up=_of_formula("pairs", pairs_by_formula),
        range=_OPEN,
        own_count=True,
    ),
    Metric(
        "shuffle_error",
        "fraction",
        "lower",
        launch=shuffle_error,
        made_up=_of_formula("bytes", bytes_by_formula),
        range=_OPEN,
    ),
    Metric(
        "shuffle_saved", "x", "higher", launch=shuffle_saved, made_up=_made_up_ratio("bytes.naive", "bytes.in_mapper")
    ),
    Metric(
        "combiner_saved", "x", "higher", launch=combiner_saved, made_up=_made_up_ratio("bytes.naive", "bytes.combiner")
    ),
    Metric("remote_error", "fraction", "lower", launch=remote_error, made_up=made_up_remote),
    Metric("weight_difference", "1", "lower", launch=weight_difference, made_up=reporting("difference.naive")),
    Metric("killed_difference", "1", "lower", launch=killed_difference, made_up=reporting(f"difference.{KILLED}")),
    Metric("lost_tasks", "tasks", None, launch=lost_tasks, made_up=reporting(f"lost.{KILLED}")),
    Metric("pairs_again", "fraction", None, launch=pairs_again, made_up=made_up_again, range=(-1.0, math.inf)),
    Metric(
        "wire_over_all_reduce",
        "x",
        "lower",
        launch=wire_over_all_reduce,
        made_up=_made_up_ratio("wire.in_mapper", "wire.all_reduce"),
    ),
]
