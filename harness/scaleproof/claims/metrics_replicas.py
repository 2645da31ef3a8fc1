"""Metrics of strategies whose ranks go at their own pace: how stale gradients are, how far apart replicas are, what
they send and wait for, and whether a training diverged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, of_workers, times_count
from scaleproof.claims.learning_curve import diverged_at
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.replica_split import COLLECTIVES
from scaleproof.claims.sample_columns import Columns, columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase

MODEL_EVENTS = ("send", "call", "put", "get")
STEPS = 4
"""Of a made-up launch, which can then have a quarter of a message a step."""


def staleness(record: Record, samples: pd.DataFrame) -> float | None:
    """Median staleness of the gradients that servers apply, in updates.

    staleness = median over updates of (updates of the server since the worker took the parameters)

    Synchronous servers have 0. With n workers at equal speed an asynchronous server has n - 1.
    """
    values = staleness_of_gradients(record, samples)
    return float(np.median(values)) if len(values) else None


def staleness_p95(record: Record, samples: pd.DataFrame) -> float | None:
    """Staleness that 95 % of the gradients do not exceed, in updates.

    staleness_p95 = 95th percentile over updates of the [staleness](staleness.md)

    A bound on staleness binds the tail, which the median does not show.
    """
    values = staleness_of_gradients(record, samples)
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
    A launch that has diverged has its step in place of a number ([diverged](diverged.md)).
    """
    return _last(record, samples, "test_loss") if diverged_at(record, samples) is None else None


def diverged(record: Record, samples: pd.DataFrame) -> float | None:
    """1 if the training diverged, else 0; None where nothing was trained.

    diverged = 1 if a loss of training or of a test is not finite or above 100 ln(classes), and the last test is so too

    ln(classes) is the loss of guessing: a softmax whose inputs stay finite can have any loss, so a bound is needed, and
    this one is by definition.

    A strategy whose ranks go at their own pace trains on to its last step, so that no rank waits for one that is gone.
    Such a launch is a result and no failure: metrics of what it learned say `diverged` with the
    [step](diverged_step.md) in place of a number, and it counts as worse than every number in verdicts
    ([verdicts](../verdicts.md#launches-without-a-number)).
    """
    trained = isinstance(record.case, TrainCase) and record.case.compute == "real"
    if not trained or not len(columns(record, samples).of("loss", "test_loss")):
        return None
    return float(diverged_at(record, samples) is not None)


def diverged_step(record: Record, samples: pd.DataFrame) -> float | None:
    """The first step with a loss of a diverged training on any rank; None where the training did not diverge.

    diverged_step = least number of a step, from 0 with the warm-up, whose loss of training or of a test is not finite
    or above 100 ln(classes)

    See [diverged](diverged.md).
    """
    step = diverged_at(record, samples)
    return None if step is None else float(step)


def control_messages(record: Record, samples: pd.DataFrame) -> float | None:
    """Messages and calls that carry no part of a model, per step of a rank that trains.

    control_messages = messages of timed `control` events of all ranks / timed steps of the ranks that train

    An answer to a call belongs to the call. An event that says no number is one message.
    """
    if not _replicas(record):
        return None
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.timed("step"))
    counts = rows.value[rows.timed("control")]
    messages = float(np.where(np.isnan(counts), 1.0, counts).sum())
    return messages / len(steps) if len(steps) else None


def model_bytes_per_step(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes of models and gradients that ranks ask to move, per step of a rank that trains.

    model_bytes_per_step = bytes of timed sends, calls with their answers, puts and gets / timed steps

    None where ranks exchange by collectives: what these move follows from their algorithm. Bytes on
    the wire are more, by headers: see [wire_bytes_ratio](wire_bytes_ratio.md).
    """
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.timed("step"))
    if not len(steps) or not _replicas(record) or len(rows.timed(*COLLECTIVES)):
        return None
    return float(sum(rows.nbytes[rows.timed(event)].sum() for event in MODEL_EVENTS)) / len(steps)


def control_bytes_per_step(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes of messages and calls that carry no part of a model, per step of a rank that trains.

    control_bytes_per_step = bytes of timed `control` events of all ranks, answers included / timed steps of the ranks
    that train

    Headers are not in it. How many messages these are: [control_messages](control_messages.md).
    """
    if not _replicas(record):
        return None
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.timed("step"))
    return float(rows.nbytes[rows.timed("control")].sum()) / len(steps) if len(steps) else None


def model_messages(record: Record, samples: pd.DataFrame) -> float | None:
    """Messages, calls, puts and gets that carry a part of a model or of a gradient, per step of a rank that trains.

    model_messages = timed sends, calls, puts and gets of all ranks / timed steps of the ranks that train

    An answer to a call belongs to the call. None where ranks exchange by collectives, as for
    [model_bytes_per_step](model_bytes_per_step.md).
    """
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.timed("step"))
    if not len(steps) or not _replicas(record) or len(rows.timed(*COLLECTIVES)):
        return None
    return len(rows.timed(*MODEL_EVENTS)) / len(steps)


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

    barrier_share = timed `barrier_s` of all ranks / timed steps of the ranks that train, both in s

    A rank that polls its peers notes how long it did; the first server of a central barrier how long it held back the
    answer to each gradient.
    """
    rows = columns(record, samples)
    steps, waits = of_workers(record, samples, rows.timed("step")), rows.timed("barrier_s")
    if not len(waits) or not times_count(record):
        return None
    return float(rows.value[waits].sum() / ((rows.end[steps] - rows.start[steps]).sum() / SECOND))


def _replicas(record: Record) -> bool:
    return isinstance(record.case, TrainCase) and record.case.replicas is not None


def staleness_of_gradients(record: Record, samples: pd.DataFrame) -> np.ndarray:
    """Of every gradient that a server applied after the warm-up, in updates."""
    return _timed_values(record, samples, "staleness")


def _timed_values(record: Record, samples: pd.DataFrame, event: str) -> np.ndarray:
    rows = columns(record, samples)
    values: np.ndarray = rows.value[rows.timed(event)]
    return values


def _last(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    """The value of the last evaluation; None where that is no number."""
    rows: Columns = columns(record, samples)
    found = rows.of(event)
    if not len(found):
        return None
    value = float(rows.value[found[rows.end[found].argmax()]])
    return value if math.isfinite(value) else None


def workers_of(case: AnyCase) -> tuple[int, ...]:
    """Ranks that train; ImpossibleValue for a case whose strategy is no program of each rank."""
    if not isinstance(case, TrainCase) or case.replicas is None:
        raise ImpossibleValue("the strategy of this case is no program of each rank")
    return tuple(range(case.ranks - case.workers, case.ranks))


def made_up_per_step(event: str) -> MakeUp:
    """Launches in which the ranks that train have so much of something per step."""

    def made(wanted: Wanted) -> MadeUp:
        workers, count = workers_of(wanted.case), round(STEPS * possible(wanted.known))
        steps = _steps_of(workers)
        if event == "control":
            return events(*steps, Event("control", ranks=workers, value=STEPS * possible(wanted.known)))
        return events(*steps, Event("send", nbytes=count, ranks=workers))

    return made


def made_up_bytes_of_control(wanted: Wanted) -> MadeUp:
    """Launches whose ranks that train send so many bytes of control per step."""
    workers, sent = workers_of(wanted.case), round(STEPS * possible(wanted.known))
    return events(*_steps_of(workers), Event("control", nbytes=sent, ranks=workers, value=1.0))


def made_up_messages(wanted: Wanted) -> MadeUp:
    """Launches whose ranks that train send so many messages per step."""
    workers, count = workers_of(wanted.case), round(STEPS * possible(wanted.known))
    return events(*_steps_of(workers), *[Event("send", nbytes=4, ranks=workers)] * count)


def _steps_of(workers: tuple[int, ...]) -> list[Event]:
    return [Event("step", float(number), number + 1.0, step=number, ranks=workers) for number in range(STEPS)]


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


def made_up_diverged(wanted: Wanted) -> MadeUp:
    """A launch that diverged (1), or did not (0)."""
    if not isinstance(wanted.case, TrainCase) or wanted.case.compute != "real":
        raise ImpossibleValue("only a training with real compute diverges")
    return events(Event("loss", ranks=(0,), value=math.inf if possible(wanted.known, 0, 1) > 0.5 else 1.0))


def made_up_diverged_step(wanted: Wanted) -> MadeUp:
    """A launch that diverged at this step."""
    if not isinstance(wanted.case, TrainCase) or wanted.case.compute != "real":
        raise ImpossibleValue("only a training with real compute diverges")
    if possible(wanted.known) != round(wanted.known):
        raise ImpossibleValue(f"{wanted.known:g} is no number of a step")
    return events(Event("loss", ranks=(0,), step=round(wanted.known), value=math.inf))
