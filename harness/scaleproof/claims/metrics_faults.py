"""Metrics of launches in which ranks were killed or paused: how long training takes to recover, and what it loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics_replicas import workers_of
from scaleproof.claims.sample_columns import Columns, columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase

NEAR = 0.25
"""A made-up launch has a whole number of steps, which may differ by this share from what is wanted."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A rank did nothing, from a moment to another one, in ns on rank 0's clock. `replaced`: a successor ended it."""

    rank: int
    start: int
    end: int
    replaced: bool = False


def absences(record: Record, samples: pd.DataFrame) -> list[Absence]:
    """Of all ranks that were killed or paused, in the order of time. A rank that was killed is away until its successor
    has finished a step, else until the last rank has ended."""
    rows = columns(record, samples)
    if not len(rows.of("killed", "pause")):
        return []
    starts, ends = _times(record, rows)
    last = ends[rows.of("end", "step")]
    found = [Absence(int(rows.rank[row]), int(starts[row]), int(ends[row])) for row in rows.of("pause") if len(last)]
    for row in rows.of("killed") if len(last) else ():
        rank, killed = int(rows.rank[row]), int(starts[row])
        steps = rows.of("step")
        by_successor = ends[steps][(rows.rank[steps] == rank) & (ends[steps] > killed)]
        end = by_successor.min() if len(by_successor) else last.max()
        found.append(Absence(rank, killed, int(end), bool(len(by_successor))))
    return sorted(found, key=lambda absence: absence.start)


def time_to_recover(record: Record, samples: pd.DataFrame) -> float | None:
    """Time from the first fault of a rank until the loss is as low again as before, in s.

    time_to_recover = first evaluation after the fault whose test loss is at most that of the last one before it
                      - begin of the fault

    A fault is a rank that is killed or that pauses ([faults](../faults.md)). None where no rank had one and where
    nothing was evaluated before it; `not recovered`, with the lowest loss after it, where the loss was never as low
    again. The resolution is the time between two evaluations. Training that goes on without the rank may have a time
    near 0: nothing had to be recovered.
    """
    after = _after_fault(record, samples)
    if after is None:
        return None
    again = after.moments[after.losses <= after.before]
    return float(again.min() - after.fault) / SECOND if len(again) else None


def not_recovered(record: Record, samples: pd.DataFrame) -> str | None:
    """What a launch has in place of a number whose loss was never as low again as before the fault."""
    after = _after_fault(record, samples)
    if after is None or not len(after.losses) or (after.losses <= after.before).any():
        return None
    finite = after.losses[np.isfinite(after.losses)]
    lowest = f"lowest loss {finite.min():.3g}" if len(finite) else "no loss was finite"
    return f"not recovered, {lowest} after {after.before:.3g}"


@dataclass(frozen=True, slots=True)
class _AfterFault:
    """The last loss before the first fault, its moment, and the evaluations after it."""

    before: float
    fault: int
    moments: np.ndarray
    losses: np.ndarray


def _after_fault(record: Record, samples: pd.DataFrame) -> _AfterFault | None:
    """None where there was no fault, or no evaluation before it."""
    away = absences(record, samples)
    if not away or not times_count(record):
        return None
    rows = columns(record, samples)
    evaluated, times = rows.of("test_loss"), _times(record, rows)[1]
    moments, losses = times[evaluated], rows.value[evaluated]
    before = moments <= away[0].start
    if not before.any():
        return None
    last = losses[before][moments[before].argmax()]
    return _AfterFault(float(last), away[0].start, moments[~before], losses[~before])


def time_to_replace(record: Record, samples: pd.DataFrame) -> float | None:
    """Time from the death of a rank until its successor has finished its first step, in s.

    time_to_replace = end of the successor's first step - death of the rank before it

    It has three parts: the time that the case lets the place be empty, the start of the successor, and what it needs
    to join: connections, parameters, a step. None where no rank had a successor.
    """
    taken = [away.end - away.start for away in absences(record, samples) if away.replaced]
    return max(taken) / SECOND if taken and times_count(record) else None


def samples_lost(record: Record, samples: pd.DataFrame) -> float | None:
    """Training samples that were not trained on because ranks were away.

    samples_lost = sum over faults of (median over the ranks that train and were there all the while of the steps that
                   they finished meanwhile) x samples of a step

    A rank that is killed is away until its successor has finished a step, else until the last rank has ended; one that
    pauses, until it goes on. A step that the rank did not finish is among these. What it had finished and told nobody
    is not: it depends on the strategy, and no event shows it. None where no rank was away, and where at some
    time all were.
    """
    case, away = record.case, absences(record, samples)
    if not away or not isinstance(case, TrainCase):
        return None
    rows = columns(record, samples)
    steps = rows.of("step")
    ends, ranks = _times(record, rows)[1][steps], rows.rank[steps]
    missed = 0.0
    for absence in away:
        meanwhile = ranks[(ends > absence.start) & (ends <= absence.end)]
        absent = {other.rank for other in away if other.start < absence.end and other.end > absence.start}
        present = sorted(set(range(case.ranks - case.workers, case.ranks)) - absent - {absence.rank})
        if not present:
            return None
        missed += float(np.median([np.count_nonzero(meanwhile == rank) for rank in present]))
    return missed * case.batch


def _times(record: Record, rows: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of every row in ns, on rank 0's clock."""
    offsets = offsets_of(record, rows.rank)
    return rows.start + offsets, rows.end + offsets


def made_up_recovery(wanted: Wanted) -> MadeUp:
    """A launch whose loss is as low again so long after a fault."""
    took, dead = possible(wanted.known), workers_of(wanted.case)[-1]
    before, after = Event("test_loss", 1.0, 1.0, ranks=(0,), value=1.0), 1.0 + took
    again = Event("test_loss", after, after, ranks=(0,), value=1.0) if took else None
    if again is None:
        raise ImpossibleValue("an evaluation at the moment of the fault is one before it")
    return events(before, Event("killed", 1.0, 1.0, ranks=(dead,)), again, Event("end", after, after))


def made_up_replacement(wanted: Wanted) -> MadeUp:
    """A launch whose successor finishes a step so long after a death."""
    took, dead = possible(wanted.known), workers_of(wanted.case)[-1]
    if not took:
        raise ImpossibleValue("a step that ends at the moment of the death is one of the rank that died")
    step = Event("step", 1.0, 1.0 + took, ranks=(dead,))
    return events(Event("killed", 1.0, 1.0, ranks=(dead,)), step, Event("end", 2.0 + took, 2.0 + took))


def made_up_loss(wanted: Wanted) -> MadeUp:
    """A launch whose other ranks do so many samples in their steps while one is away."""
    workers, value = workers_of(wanted.case), possible(wanted.known)
    batch = wanted.case.value("batch")
    steps = round(value / batch)
    if abs(steps * batch - value) > NEAR * value or (steps and len(workers) < 2):
        raise ImpossibleValue(f"{value:g} samples in steps of {batch}")
    step = Event("step", 1.0, 2.0, ranks=workers[:-1])
    return events(Event("killed", 1.0, 1.0, ranks=workers[-1:]), *[step] * steps, Event("end", 3.0, 3.0))
