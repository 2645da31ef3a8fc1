"""What share of this machine's own bound a rate attains, and rates that cannot be. Without a measured bound there is no
percentage: none is ever assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from scaleproof.claims.metrics_sizes import bus_factor, by_size
from scaleproof.core.record_schema import Failure, Record
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.record.machine import Bound, MachineProfile
from scaleproof.spec.case import CollectiveCase, TrainCase, TransferCase
from scaleproof.workloads.case_network import network_of

GIGA = 1e9
CERTAIN_FACTOR = 4.0
"""A rate above so many times the fastest measured copy of memory is no rate: every byte is written at least once, ranks
and cores may share that work, clocks may be higher than at calibration; four times covers all that on any machine we
know, and faults of a clock or a count exceed it by far."""
RATES = ("transfer_bandwidth", "algbw", "busbw")


@dataclass(frozen=True, slots=True)
class Attainable:
    """A value beside its bound, both in the metric's unit: `share` of the bound, `above` when it lies beyond the
    bound's interval; `impossible` when no measurement can be right that gives it. `why` names how the bound was taken.
    """

    value: float
    limit: float
    low: float | None
    high: float | None
    share: float
    above: bool
    impossible: bool
    bound: Bound
    why: str


def attainable(
    record: Record, metric: str, value: float, profile: MachineProfile | None, nbytes: int | None = None
) -> Attainable | None:
    """A rate of bytes (GB/s) against the bound of the path that they took, of samples (1/s) against the cores'
    arithmetic; None for other metrics and where this machine has no bound for it. `nbytes`: message size; without it
    the highest of several bounds counts."""
    case = record.case
    if profile is None or profile.machine != record.machine:
        return None
    if isinstance(case, TrainCase):
        found, per_unit = profile.bound("single_core_flop"), _samples_per_flop(record, case, metric)
        return None if found is None or per_unit is None else _beside(value, found, per_unit, impossible=False)
    if metric not in RATES or not isinstance(case, TransferCase | CollectiveCase) or case.ranks < 2:
        return None
    found = _bound(record, profile, nbytes)
    if found is None:
        return None
    return _beside(
        value, found, _times(record, metric, found) / GIGA, impossible=_beyond_memory(value, profile) is not None
    )


def _beside(value: float, bound: Bound, per_unit: float, impossible: bool) -> Attainable:
    """`per_unit`: by what the bound is multiplied to be in the metric's unit."""
    low, high = (None if one is None else one * per_unit for one in (bound.low, bound.high))
    limit = bound.value * per_unit
    return Attainable(
        value,
        limit,
        low,
        high,
        value / limit,
        value > (limit if high is None else high),
        impossible,
        bound,
        bound.taken,
    )


def _samples_per_flop(record: Record, case: TrainCase, metric: str) -> float | None:
    """Samples per second of all ranks for each operation per second of one core, by the direct count of the network's
    operations (docs/workloads.md); None for a network that is not computed, other metrics, and where the record does
    not say how many cores there were."""
    cores = record.environment.get("cores")
    if metric not in ("throughput", "forward_throughput") or case.compute == "none" or not cores:
        return None
    network = network_of(case)
    flop = network.train_flop if metric == "throughput" else network.forward_flop
    return min(cores, case.ranks * case.threads_per_rank) / flop


def impossible(record: Record, samples: pd.DataFrame, profile: MachineProfile | None) -> Failure | None:
    """Why a launch's rates cannot be true; None when they can, or when this machine's memory was never measured."""
    case = record.case
    if (
        profile is None
        or profile.machine != record.machine
        or not isinstance(case, TransferCase | CollectiveCase)
        or case.ranks < 2
    ):
        return None
    for row in by_size(record, samples).to_dict("records"):
        rate, nbytes = float(row["algbw_gbs"]), int(row["nbytes"])
        limit = _beyond_memory(rate, profile) if nbytes else None
        if limit is not None:
            said = (
                f"{row['operation']} of {nbytes} B at {rate:.4g} GB/s is above {limit:.4g} GB/s, {CERTAIN_FACTOR:g} "
                "times the fastest copy of memory here"
            )
            return Failure(
                code="impossible_value",
                rank=-1,
                message=said,
                step=-1,
                operation=str(row["operation"]),
                advice=ADVICE["impossible_value"],
            )
    return None


def _bound(record: Record, profile: MachineProfile, nbytes: int | None) -> Bound | None:
    case, path = record.case, _path(record)
    if path == "socket":
        over_loopback = case.interface == "lo" and case.plugin("fabric").existing_network
        return profile.bound("loopback") if over_loopback else None
    if path != "shared memory":
        return None
    if isinstance(case, TransferCase):
        return profile.bound("memory_copy", nbytes)
    two_rank = isinstance(case, CollectiveCase) and (case.operation, case.ranks) == ("all_reduce", 2)
    return profile.bound("two_rank_all_reduce", nbytes) if two_rank else None


def _times(record: Record, metric: str, bound: Bound) -> float:
    """By what a bound is multiplied to bound this metric. A socket bounds what crosses a link, busbw; adds and copies
    of an all-reduce bound algbw."""
    case = record.case
    if not isinstance(case, CollectiveCase):
        return 1.0
    factor = bus_factor(case.operation, case.ranks)
    if bound.name == "two_rank_all_reduce":
        return factor if metric == "busbw" else 1.0
    return 1.0 if metric == "busbw" else 1 / factor


def _path(record: Record) -> str | None:
    """How the ranks' bytes moved; None when they do not agree or never said."""
    paths = {(found or {}).get("path") for found in record.transport.get("ranks", [])}
    return paths.pop() if len(paths) == 1 else None


def _beyond_memory(rate: float, profile: MachineProfile) -> float | None:
    """The limit in GB/s when a rate exceeds it or is no number; None when the rate is possible or memory was never
    measured."""
    fastest = profile.bound("memory_copy")
    if fastest is None:
        return None
    limit = CERTAIN_FACTOR * (fastest.value if fastest.high is None else fastest.high) / GIGA
    return limit if not math.isfinite(rate) or rate > limit else None
