"""The share of this machine's measured bound that a rate attains, and rates that are impossible. Without a measured
bound there is no share: bounds are never assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_sizes import bus_factor, by_size
from scaleproof.core.record_schema import Failure, Record
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.record.machine import Bound, MachineProfile
from scaleproof.spec.case import CollectiveCase, TrainCase, TransferCase
from scaleproof.workloads.case_network import network_of

GIGA = 1e9
CERTAIN_FACTOR = 4.0
"""A rate above so many times the fastest measured copy of memory is impossible: every byte is written at least once.
The factor covers cores that share that work and clock frequencies above those at calibration, on any machine that was
tried; faults of a clock or a count exceed it by far."""
OF_COLLECTIVES = ("algbw", "busbw")


@dataclass(frozen=True, slots=True)
class Attainable:
    """A value and its bound, both in the metric's unit. `share`: of the bound; `above`: it lies beyond the fastest
    launch of the bound; `impossible`: the measurement must be wrong; `why`: how the bound was measured."""

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
    record: Record, metric: Metric, value: float, profile: MachineProfile | None, nbytes: int | None = None
) -> Attainable | None:
    """A rate of bytes (GB/s) against the bound of their path, or a rate of samples (1/s) against the cores' arithmetic;
    None for other metrics, and where this machine has no bound for it. `nbytes`: message size; without it the highest
    of several bounds counts."""
    case = record.case
    if profile is None or profile.machine != record.machine:
        return None
    if isinstance(case, TrainCase):
        bound, factor = profile.bound("single_core_flop"), _samples_per_flop(record, case, metric.name)
        return None if bound is None or factor is None else _compared(value, bound, factor, impossible=False)
    if case.ranks < 2 or not _moves_bytes(record, metric):
        return None
    bound = _bound(record, profile, nbytes)
    if bound is None:
        return None
    factor = _factor(record, metric.name, bound) / GIGA
    return _compared(value, bound, factor, impossible=_beyond_memory(value, profile) is not None)


def _compared(value: float, bound: Bound, factor: float, impossible: bool) -> Attainable:
    """`factor`: from the bound's unit to the metric's."""
    low, high = (None if end is None else end * factor for end in (bound.low, bound.high))
    limit = bound.value * factor
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
    """Samples per second of all ranks for each operation per second of one core, by the count of the network's
    operations (docs/workloads.md). None for a network that is not computed, for other metrics, and where the record
    does not say how many cores there were."""
    cores = record.environment.get("cores")
    if metric not in ("throughput", "forward_throughput") or not cores:
        return None
    if case.compute == "none" or case.replayed:  # no core here did the arithmetic
        return None
    network = network_of(case)
    flop = network.train_flop if metric == "throughput" else network.forward_flop
    return min(cores, case.ranks * case.threads_per_rank) / flop


def impossible(record: Record, samples: pd.DataFrame, profile: MachineProfile | None) -> Failure | None:
    """The failure of a launch with an impossible rate; None when all rates are possible, or when this machine's memory
    was never measured."""
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
            message = (
                f"{row['operation']} of {nbytes} B at {rate:.4g} GB/s is above {limit:.4g} GB/s, {CERTAIN_FACTOR:g} "
                "times the fastest copy of memory here"
            )
            return Failure(
                code="impossible_value",
                rank=-1,
                message=message,
                step=-1,
                operation=str(row["operation"]),
                advice=ADVICE["impossible_value"],
            )
    return None


def _moves_bytes(record: Record, metric: Metric) -> bool:
    """Whether the metric is a rate of bytes that has a bound: of a collective, or from one rank to another."""
    if isinstance(record.case, CollectiveCase):
        return metric.name in OF_COLLECTIVES
    return metric.moves_one_way is not None and metric.moves_one_way(record.case)


def _bound(record: Record, profile: MachineProfile, nbytes: int | None) -> Bound | None:
    case, path = record.case, _path(record)
    if path == "socket":
        over_loopback = case.interface == "lo" and case.plugin("fabric").existing_network
        return profile.bound("loopback") if over_loopback else None
    if path != "shared memory":
        return None
    way = "plain_" if case.buffers == "plain" else ""
    if not isinstance(case, CollectiveCase):
        return profile.bound(f"{way}memory_copy", nbytes)
    two_rank = (case.operation, case.ranks) == ("all_reduce", 2)
    return profile.bound(f"{way}two_rank_all_reduce", nbytes) if two_rank else None


def _factor(record: Record, metric: str, bound: Bound) -> float:
    """From a bound to the bound of this metric. A socket bounds the bytes on a link (busbw); the additions and copies
    of an all-reduce bound algbw."""
    case = record.case
    if not isinstance(case, CollectiveCase):
        return 1.0
    factor = bus_factor(case.operation, case.ranks)
    if bound.name.endswith("two_rank_all_reduce"):
        return factor if metric == "busbw" else 1.0
    return 1.0 if metric == "busbw" else 1 / factor


def _path(record: Record) -> str | None:
    """The path of the ranks' bytes; None when ranks report different ones, or none."""
    paths = {(of_rank or {}).get("path") for of_rank in record.transport.get("ranks", [])}
    return paths.pop() if len(paths) == 1 else None


def _beyond_memory(rate: float, profile: MachineProfile) -> float | None:
    """The limit in GB/s when a rate exceeds it or is not finite; None when the rate is possible, or memory was never
    measured."""
    fastest = profile.bound("memory_copy")
    if fastest is None:
        return None
    limit = CERTAIN_FACTOR * (fastest.value if fastest.high is None else fastest.high) / GIGA
    return limit if not math.isfinite(rate) or rate > limit else None
