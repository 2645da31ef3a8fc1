"""What the centre costs: bytes that pass through it, and its time."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_replicas import model_bytes_per_step, workers_of
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.workloads.case_network import network_of

ITEM = 4
"""Bytes of a parameter."""


def model_bytes_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes of models per step of a worker, over what the scheme says: the centre down and a difference up, every tau
    steps.

    model_bytes_ratio = model_bytes_per_step / (2 x bytes of the model / tau)

    [model_bytes_per_step](model_bytes_per_step.md) counts what ranks ask to send. All of it passes through the centre,
    whose load with p workers is therefore p times as much in the time of a step: O(p / tau). Exact where tau divides
    the number of steps.
    """
    expected = _expected_bytes(record.case)
    moved = model_bytes_per_step(record, samples)
    return None if expected is None or moved is None else moved / expected


def centre_busy_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time that the centre is busy per step of each worker, in s: its load.

    centre_busy_s = (time of the run - time that the centre waits for messages) / steps of a worker, summed over servers

    A step takes longer where a worker waits for the centre; the load is counted in s of the centre per step and not as
    a share of the step, so that it is the same whether workers wait or not, until links are full: a send then takes
    longer.
    """
    case = record.case
    if not isinstance(case, TrainCase) or not (servers := case.ranks - case.workers) or not times_count(record):
        return None
    rows = columns(record, samples)
    steps, waits = len(rows.timed("step")) / case.workers, rows.timed("wait")
    ends, starts = rows.timed("end"), rows.timed("start")
    waits, ends, starts = (found[rows.rank[found] < servers] for found in (waits, ends, starts))
    if not steps or len(ends) < servers or len(starts) < servers:
        return None
    whole = rows.end[ends].sum() - rows.start[starts].sum()
    waited = (rows.end[waits] - rows.start[waits]).sum()
    return float(whole - waited) / SECOND / steps


def _expected_bytes(case: AnyCase) -> float | None:
    """Per step of a worker; None for a strategy without a centre."""
    if not isinstance(case, TrainCase) or case.value("strategy.dedicated_servers") is None:
        return None
    tau = case.value("strategy.tau")
    return None if tau is None else 2 * ITEM * network_of(case).parameters / float(tau)


def made_up_traffic(wanted: Wanted) -> MadeUp:
    """Launches that have sent so many times the bytes in a step."""
    expected = _expected_bytes(wanted.case)
    if expected is None:
        raise ImpossibleValue("the strategy of this case has no centre")
    workers = workers_of(wanted.case)
    step = Event("step", 0.0, 1.0, ranks=workers)
    return events(step, Event("send", nbytes=round(possible(wanted.known) * expected), ranks=workers))


def made_up_busy(wanted: Wanted) -> MadeUp:
    """Launches of one step whose first rank waits for a second and is busy for so long."""
    workers = workers_of(wanted.case)
    if 0 in workers:
        raise ImpossibleValue("the strategy of this case has no centre")
    whole = 1.0 + possible(wanted.known)
    servers = tuple(range(workers[0]))
    waits = (Event("wait", 0.0, 1.0 if rank == 0 else whole, ranks=(rank,)) for rank in servers)
    marks = (Event("start"), Event("end", whole, whole))
    return events(*marks, *waits, Event("step", 0.0, 1.0, ranks=workers))


METRICS = [
    Metric("model_bytes_ratio", "1", None, launch=model_bytes_ratio, made_up=made_up_traffic, own_count=True),
    Metric("centre_busy_s", "s", "lower", launch=centre_busy_s, made_up=made_up_busy),
]
