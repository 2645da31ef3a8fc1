"""Metrics of strategies whose ranks go at their own pace: how stale gradients are, how far apart replicas are, what
they send, and how much training a target takes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import Columns, columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase

MODEL_EVENTS = ("send", "call", "put", "get")


def staleness(record: Record, samples: pd.DataFrame) -> float | None:
    """Median staleness of the gradients that servers apply, in updates.

    staleness = median over updates of (updates of the server since the worker took the parameters)

    Synchronous servers have 0. With n workers at equal speed an asynchronous server has n - 1.
    """
    values = _timed_values(record, samples, "staleness")
    return float(np.median(values)) if len(values) else None


def staleness_p95(record: Record, samples: pd.DataFrame) -> float | None:
    """Staleness that 95 % of the gradients do not exceed, in updates.

    staleness_p95 = 95th percentile over updates of the [staleness](staleness.md)

    A bound on staleness binds the tail, which the median does not show.
    """
    values = _timed_values(record, samples, "staleness")
    return float(np.percentile(values, 95, method="inverted_cdf")) if len(values) else None


def consensus_distance(record: Record, samples: pd.DataFrame) -> float | None:
    """How far apart the replicas are at the last evaluation, as a share of their average.

    consensus_distance = root of the mean over replicas of ||x_i - average||^2 / ||average||

    0 where all replicas are equal. Independent replicas drift apart with the number of steps.
    """
    return _last(record, samples, "consensus_distance")


def test_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean loss on the test set at the last evaluation, of the model that the strategy evaluates.

    test_loss = mean cross-entropy over the test set, at the last evaluation

    Which model that is (the average of replicas, the servers' centre, or the first rank's) stands in
    [strategies](../strategies.md#programs-of-each-rank). Batch normalisations use the test set's own mean and variance.
    """
    return _last(record, samples, "test_loss")


def control_messages(record: Record, samples: pd.DataFrame) -> float | None:
    """Messages and calls that carry no part of a model, per step of a rank that trains.

    control_messages = timed `control` events of all ranks / timed steps of all ranks

    An answer to a call belongs to the call.
    """
    rows = columns(record, samples)
    steps = rows.timed("step")
    return len(rows.timed("control")) / len(steps) if len(steps) and _replicas(record) else None


def model_bytes_per_step(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes of models and gradients that ranks ask to move, per step of a rank that trains.

    model_bytes_per_step = bytes of timed sends, calls with their answers, puts and gets / timed steps

    Bytes on the wire are more, by headers: see [wire_bytes_ratio](wire_bytes_ratio.md).
    """
    rows = columns(record, samples)
    steps = rows.timed("step")
    if not len(steps) or not _replicas(record):
        return None
    return float(sum(rows.nbytes[rows.timed(event)].sum() for event in MODEL_EVENTS)) / len(steps)


def dropped_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of all gradients that come too late for their step and are dropped.

    dropped_share = dropped gradients / (dropped gradients + gradients that are used)

    They were computed for nothing: throughput counts their samples, progress does not.
    """
    dropped = len(_timed_values(record, samples, "dropped_gradient"))
    used = float(np.sum(_timed_values(record, samples, "used_gradients")))
    return dropped / (dropped + used) if used else None


def barrier_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of their steps that workers wait at barriers for others.

    barrier_share = timed `barrier_s` of all ranks / timed steps of all ranks, both in s
    """
    rows = columns(record, samples)
    steps, waits = rows.timed("step"), rows.timed("barrier_s")
    if not len(waits) or not times_count(record):
        return None
    return float(rows.value[waits].sum() / ((rows.end[steps] - rows.start[steps]).sum() / SECOND))


def samples_to_quality(record: Record, samples: pd.DataFrame) -> float | None:
    """Training samples of all ranks until the target accuracy. None if training did not converge, nothing was
    evaluated, or the data set has no target.

    samples_to_quality = steps of all ranks that ended before the first evaluation at the target x samples of a step

    Beside [time_to_quality](time_to_quality.md): a strategy may need more samples and less time.
    """
    case = record.case
    if not isinstance(case, TrainCase) or (target := case.plugin("dataset").target) is None:
        return None
    rows = columns(record, samples)
    reached = rows.of("test_accuracy")
    reached = reached[rows.value[reached] >= target]
    if not len(reached):
        return None
    steps = rows.of("step")
    moment = (rows.end[reached] + offsets_of(record, rows.rank[reached])).min()
    trains = rows.rank[steps] >= case.ranks - case.workers  # a server's steps train nothing
    before = trains & (rows.end[steps] + offsets_of(record, rows.rank[steps]) <= moment)
    return float(np.count_nonzero(before) * case.batch)


def _replicas(record: Record) -> bool:
    return isinstance(record.case, TrainCase) and record.case.replicas is not None


def _timed_values(record: Record, samples: pd.DataFrame, event: str) -> np.ndarray:
    rows = columns(record, samples)
    values: np.ndarray = rows.value[rows.timed(event)]
    return values


def _last(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    rows: Columns = columns(record, samples)
    found = rows.of(event)
    return float(rows.value[found[rows.end[found].argmax()]]) if len(found) else None


def workers_of(case: AnyCase) -> tuple[int, ...]:
    """Ranks that train; ImpossibleValue for a case whose strategy is no program of each rank."""
    if not isinstance(case, TrainCase) or case.replicas is None:
        raise ImpossibleValue("the strategy of this case is no program of each rank")
    return tuple(range(case.ranks - case.workers, case.ranks))


def made_up_per_step(event: str) -> MakeUp:
    """Launches in which the ranks that train have so much of something per step."""

    def made(wanted: Wanted) -> MadeUp:
        workers = workers_of(wanted.case)
        step = Event("step", 0.0, 1.0, ranks=workers)
        if event == "control":
            return events(step, *[Event("control", ranks=workers)] * round(possible(wanted.known)))
        return events(step, Event("send", nbytes=round(possible(wanted.known)), ranks=workers))

    return made


def made_up_dropped(wanted: Wanted) -> MadeUp:
    """A launch of 1,000 gradients."""
    dropped = round(1000 * possible(wanted.known, 0.0, 1.0 - 1e-9))
    used = Event("used_gradients", ranks=(0,), value=float(1000 - dropped))
    return events(used, *[Event("dropped_gradient", ranks=(0,), value=1.0)] * dropped)


def made_up_barrier(wanted: Wanted) -> MadeUp:
    """A launch whose ranks wait for this share of a step."""
    share = possible(wanted.known, 0.0, 1.0)
    workers = workers_of(wanted.case)
    return events(Event("step", 0.0, 1.0, ranks=workers), Event("barrier_s", ranks=workers, value=share))


def made_up_samples(wanted: Wanted) -> MadeUp:
    """A launch that reaches its target after so many samples."""
    case = wanted.case
    if not isinstance(case, TrainCase) or (target := case.plugin("dataset").target) is None:
        raise ImpossibleValue("this data set has no target")
    steps = round(possible(wanted.known) / case.batch)
    first = case.ranks - case.workers
    reached = Event("test_accuracy", 1.0, 1.0, ranks=(0,), value=target)
    return events(*[Event("step", 0.0, 1.0, ranks=(first,))] * steps, reached)
