"""How far workers have come by the end of a case's seconds, and how many questions they have asked for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_replicas import workers_of
from scaleproof.claims.sample_columns import Columns, columns, of_last_launch, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase

ENDS = (5, 95)
"""Percentiles of workers between which the spread lies."""
Groups = list[tuple[int, float]]
"""Numbers of workers, and the steps that each of them has finished."""


@of_last_launch
def progress(record: Record, samples: pd.DataFrame) -> np.ndarray | None:
    """Steps that each worker has finished by the case's `seconds` (workers,); None for a case without."""
    case = record.case
    if not isinstance(case, TrainCase) or case.seconds is None or case.replicas is None:
        return None
    rows = columns(record, samples)
    finished = in_time(record, rows, rows.of("finished"))
    steps = np.zeros(case.ranks)
    np.maximum.at(steps, rows.rank[finished], rows.value[finished])
    return steps[case.ranks - case.workers :] if len(finished) else None


def in_time(record: Record, rows: Columns, chosen: np.ndarray) -> np.ndarray:
    """Those of these rows that have ended when the case's seconds are over; all ranks begin together."""
    started = rows.of("start")
    moments = (rows.start[started] + offsets_of(record, rows.rank[started])).min() if len(started) else 0
    over = moments + seconds_of(record.case) * SECOND
    return chosen[rows.end[chosen] + offsets_of(record, rows.rank[chosen]) <= over]


def seconds_of(case: AnyCase) -> float:
    """How long a case runs, in s."""
    seconds: float | None = case.value("seconds")
    return math.inf if seconds is None else seconds


def progress_mean(record: Record, samples: pd.DataFrame) -> float | None:
    """Steps that a worker has finished by the end of the case's `seconds`, mean over workers (suite psp2017).

    progress_mean = mean over workers of steps finished within `seconds`

    A step is finished when its gradient has been sent, before the worker waits at its barrier. A step that ends after
    the case's seconds does not count.
    """
    return _of(np.mean, record, samples)


def progress_min(record: Record, samples: pd.DataFrame) -> float | None:
    """Steps of the slowest worker by the end of the case's `seconds` (suite psp2017).

    progress_min = least over workers of steps finished within `seconds`

    See [progress_mean](progress_mean.md).
    """
    return _of(np.min, record, samples)


def progress_max(record: Record, samples: pd.DataFrame) -> float | None:
    """Steps of the fastest worker by the end of the case's `seconds` (suite psp2017).

    progress_max = largest over workers of steps finished within `seconds`

    See [progress_mean](progress_mean.md).
    """
    return _of(np.max, record, samples)


def progress_std(record: Record, samples: pd.DataFrame) -> float | None:
    """How unequally far workers have come by the end of the case's `seconds` (suite psp2017).

    progress_std = standard deviation over workers of steps finished within `seconds`

    See [progress_mean](progress_mean.md). 0 where all workers have finished equally many steps.
    """
    return _of(np.std, record, samples)


def progress_spread(record: Record, samples: pd.DataFrame) -> float | None:
    """Steps between the slow and the fast workers, without the most extreme 5 % on either side (suite psp2017).

    progress_spread = 95th percentile - 5th percentile over workers of steps finished within `seconds`

    See [progress_mean](progress_mean.md).
    """
    return _of(spread_of, record, samples)


def progress_updates(record: Record, samples: pd.DataFrame) -> float | None:
    """Gradients that all workers together have sent by the end of the case's `seconds` (suite psp2017).

    progress_updates = sum over workers of steps finished within `seconds`

    See [progress_mean](progress_mean.md). Each is an update of the servers.
    """
    return _of(np.sum, record, samples)


def sample_messages(record: Record, samples: pd.DataFrame) -> float | None:
    """Questions that all workers together have asked their peers by the end of the case's `seconds` (suite psp2017).

    sample_messages = questions of polls that have ended within `seconds`

    A worker asks its whole sample at each poll, and polls again while it has to wait. Central barriers ask nothing.
    """
    if progress(record, samples) is None:
        return None
    rows = columns(record, samples)
    asked = rows.value[in_time(record, rows, rows.of("control"))]
    return float(asked[np.isfinite(asked)].sum())


def sample_per_poll(record: Record, samples: pd.DataFrame) -> float | None:
    """Questions of one poll (suite psp2017).

    sample_per_poll = questions of all polls / sum over barriers of (1 + time waited / time between two polls)

    The time waited comes from the event `barrier_s`, and is a whole number of the strategy's `poll_s` where messages
    take no time.
    """
    poll_s = record.case.value("strategy.poll_s")
    rows = columns(record, samples)
    waited, asked = rows.value[rows.of("barrier_s")], rows.value[rows.of("control")]
    if poll_s is None or not len(waited):
        return None
    return float(asked[np.isfinite(asked)].sum() / (1 + np.rint(waited / poll_s)).sum())


def spread_of(steps: np.ndarray) -> float:
    """Steps between the percentiles ENDS."""
    low, high = np.percentile(steps, ENDS)
    return float(high - low)


def _of(statistic: Callable[[np.ndarray], Any], record: Record, samples: pd.DataFrame) -> float | None:
    steps = progress(record, samples)
    return None if steps is None else float(statistic(steps))


def equal(value: float, workers: int) -> Groups:
    """All workers have finished so many steps."""
    return [(workers, value)]


def added_up(value: float, workers: int) -> Groups:
    """All together have finished so many steps."""
    return [(workers, value / workers)]


def apart(value: float, workers: int) -> Groups:
    """Two groups whose standard deviation is this."""
    some = workers // 2
    share = some / workers
    if not share:
        raise ImpossibleValue("one worker has no spread")
    return [(some, 0.0), (workers - some, value / math.sqrt(share * (1 - share)))]


def spread(value: float, workers: int) -> Groups:
    """Two groups with so many steps between them."""
    if workers < 2:
        raise ImpossibleValue("one worker has no spread")
    return [(workers // 2, 0.0), (workers - workers // 2, value)]


def making(groups_of: Callable[[float, int], Groups]) -> MakeUp:
    """Launches whose workers have finished steps in groups."""

    def made(wanted: Wanted) -> MadeUp:
        return events(
            Event("start"), *finished_by(wanted.case, groups_of(possible(wanted.known), workers(wanted.case)))
        )

    return made


def workers(case: AnyCase) -> int:
    """How many ranks of a case train; ImpossibleValue for a case without seconds, which has no progress."""
    if not math.isfinite(seconds_of(case)):
        raise ImpossibleValue("a case without seconds")
    return len(workers_of(case))


def finished_by(case: AnyCase, groups: Groups) -> list[Event]:
    """Workers in groups that have finished so many steps each, after a quarter of the case's seconds."""
    first, made, moment = workers_of(case)[0], list[Event](), seconds_of(case) / 4
    for count, value in groups:
        if count:
            made.append(Event("finished", moment, moment, tuple(range(first, first + count)), value=value))
        first += count
    return made


def made_up_messages(wanted: Wanted) -> MadeUp:
    """A launch with so many questions."""
    asked = possible(wanted.known) / workers(wanted.case)
    ranks = workers_of(wanted.case)
    return events(
        Event("start"), *finished_by(wanted.case, [(len(ranks), 1.0)]), Event("control", ranks=ranks, value=asked)
    )


def made_up_poll(wanted: Wanted) -> MadeUp:
    """A launch of one poll each."""
    ranks = workers_of(wanted.case)
    if wanted.case.value("strategy.poll_s") is None:
        raise ImpossibleValue("this strategy does not poll")
    return events(
        Event("barrier_s", ranks=ranks, value=0.0), Event("control", ranks=ranks, value=possible(wanted.known))
    )


METRICS = [
    Metric("progress_mean", "steps", "higher", launch=progress_mean, clocked=True, made_up=making(equal)),
    Metric("progress_min", "steps", "higher", launch=progress_min, clocked=True, made_up=making(equal)),
    Metric("progress_max", "steps", "higher", launch=progress_max, clocked=True, made_up=making(equal)),
    Metric("progress_std", "steps", "lower", launch=progress_std, clocked=True, made_up=making(apart)),
    Metric("progress_spread", "steps", "lower", launch=progress_spread, clocked=True, made_up=making(spread)),
    Metric("progress_updates", "updates", "higher", launch=progress_updates, clocked=True, made_up=making(added_up)),
    Metric(
        "sample_messages",
        "messages",
        "lower",
        launch=sample_messages,
        clocked=True,
        own_count=True,
        made_up=made_up_messages,
    ),
    Metric("sample_per_poll", "messages", None, launch=sample_per_poll, own_count=True, made_up=made_up_poll),
]
