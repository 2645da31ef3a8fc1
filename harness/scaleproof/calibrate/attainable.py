"""The share of its bound that a rate attains, and rates that are impossible. Bounds are measured on this machine, or
set on emulated links. They are never assumed: where there is none, there is no share but a reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from scaleproof.calibrate.link_bound import WHY, link_rate
from scaleproof.claims.compute_limit import limit_of
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_sizes import bus_factor, by_size
from scaleproof.core.record_schema import Failure, Record
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.record.machine import Bound, MachineProfile
from scaleproof.record.missing_plugins import missing_plugins
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.spec.launch_kind import kind_of

GIGA = 1e9
CERTAIN_FACTOR = 4.0
"""A rate above so many times the fastest measured copy of memory is impossible: every byte is written at least once.
The factor covers cores that share that work and clock frequencies above those at calibration, on any machine that was
tried; faults of a clock or a count exceed it by far."""
OF_COLLECTIVES = ("algbw", "busbw")
BYTES = {"B/s": 1.0, "GB/s": GIGA}
"""Units of rates of bytes, in B/s."""
COMPUTE = "compute"
"""Name of the bound of predictions."""
ROUNDING = 1e-6
"""Times of predictions are whole nanoseconds."""
LINK = "link"
"""Name of the bound of links with a set rate; the others have the names of the machine's profile."""


@dataclass(frozen=True, slots=True)
class Attainable:
    """A value and its bound, both in `unit`. `share`: of the bound; `above`: it lies beyond the fastest launch of the
    bound; `impossible`: the measurement must be wrong; `name`: of the bound; `why`: how it was measured or set."""

    value: float
    limit: float
    low: float | None
    high: float | None
    unit: str
    share: float
    above: bool
    impossible: bool
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class NoBound:
    """Why a rate has no bound."""

    why: str


Attained = Attainable | NoBound


@dataclass(frozen=True, slots=True)
class _Limit:
    """A bound in the metric's unit: see Attainable."""

    name: str
    value: float
    low: float | None
    high: float | None
    why: str


def attainable(
    record: Record, metric: Metric, value: float, profile: MachineProfile | None, nbytes: int | None = None
) -> Attained | None:
    """A rate against its bound, or why it has none; None for a metric that is no rate. `nbytes`: message size; without
    it the highest of several measured bounds counts."""
    if not metric.is_rate:
        return None
    limit = _limit(record, metric, profile, nbytes)
    if isinstance(limit, str):
        return NoBound(limit)
    return Attainable(
        value,
        limit.value,
        limit.low,
        limit.high,
        metric.unit,
        value / limit.value,
        value > (limit.value if limit.high is None else limit.high),
        metric.unit in BYTES and _beyond_memory(value * BYTES[metric.unit] / GIGA, profile) is not None,
        limit.name,
        limit.why,
    )


def _limit(record: Record, metric: Metric, profile: MachineProfile | None, nbytes: int | None) -> _Limit | str:
    """The bound of a rate, or why it has none."""
    if missing := missing_plugins(dict(record.case.named())):
        return " and ".join(f"{kind} {name!r}" for kind, name in missing) + " not installed here"
    kind = kind_of(record.case)
    if kind is None:
        return _of_prediction(record, metric)
    if metric.flop_per_sample is not None:
        return _of_cores(record, metric.flop_per_sample(record.case), profile)
    if why := _without_path(record, metric, over_links=kind.way == "namespaces"):
        return why
    if kind.way == "namespaces":
        return _of_links(record, metric, nbytes)
    bound = _of_path(record, profile, nbytes)
    return bound if isinstance(bound, str) else _scaled(bound, _factor(record, metric.name, bound) / BYTES[metric.unit])


def _of_prediction(record: Record, metric: Metric) -> _Limit | str:
    """What the ranks of a predicted training compute, where that is certain."""
    limit = limit_of(metric.name, [record])
    if limit is None:
        return "a prediction: nothing ran"
    return _Limit(
        COMPUTE, limit, None, limit * (1 + ROUNDING), "its ranks' computing alone, as this prediction takes it"
    )


def _scaled(bound: Bound, factor: float) -> _Limit:
    """`factor`: from the bound's unit to the metric's."""
    low, high = (None if end is None else end * factor for end in (bound.low, bound.high))
    return _Limit(bound.name, bound.value * factor, low, high, bound.taken)


def _measured(record: Record, profile: MachineProfile | None, name: str, nbytes: int | None = None) -> Bound | str:
    """A bound of the record's machine, or that it has none of this name."""
    bound = profile.bound(name, nbytes) if profile is not None and profile.machine == record.machine else None
    return bound or f"{name} was not measured on machine {record.machine}"


def _of_cores(record: Record, flop: float | None, profile: MachineProfile | None) -> _Limit | str:
    """Samples per second that the working cores can compute. `flop`: operations per sample (docs/workloads.md)."""
    cores = record.environment.get("cores")
    if flop is None:
        return "no core of this machine computed these samples"
    if not cores:
        return "its record does not say how many cores there were"
    bound = _measured(record, profile, "single_core_flop")
    if isinstance(bound, str):
        return bound
    return _scaled(bound, min(cores, record.case.ranks * record.case.threads_per_rank) / flop)


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


def _without_path(record: Record, metric: Metric, over_links: bool) -> str:
    """Why no path of bytes bounds a rate; empty where one does: for collectives, and for bytes that move from one rank
    to one other or, `over_links` with a set rate, through the link of one node."""
    case = record.case
    of_collective = isinstance(case, CollectiveCase) and metric.name in OF_COLLECTIVES
    of_link = over_links and metric.link_directions > 0
    if metric.unit not in BYTES or not (of_collective or of_link or metric.moves_one_way):
        return "calibration measures no bound for such a rate"
    if metric.moves_one_way and not metric.moves_one_way(case):
        return "its bytes do not move from memory of one rank to one other"
    return "" if case.ranks > 1 else "one rank: its bytes take no path between ranks"


def _of_links(record: Record, metric: Metric, nbytes: int | None) -> _Limit | str:
    """The payload that links with a set rate pass."""
    case = record.case
    carried = bus_factor(case.operation, case.ranks) if isinstance(case, CollectiveCase) else 1.0
    rate = link_rate(record, None if nbytes is None else nbytes * carried)
    if isinstance(rate, str):
        return rate
    counted = 1 / carried if metric.name == "algbw" else float(metric.link_directions or 1)
    return _Limit(LINK, rate * counted / BYTES[metric.unit], None, None, WHY)


def _of_path(record: Record, profile: MachineProfile | None, nbytes: int | None) -> Bound | str:
    """The bound of the path that the ranks' bytes took."""
    case, path = record.case, _path(record)
    if path == "socket":
        if case.interface != "lo" or not case.plugin("fabric").existing_network:
            return "calibration measures no network but loopback"
        return _measured(record, profile, "loopback")
    if path != "shared memory":
        return f"calibration measures no path {path!r}" if path else "the path of its bytes is not recorded"
    way = "plain_" if case.buffers == "plain" else ""
    if not isinstance(case, CollectiveCase):
        return _measured(record, profile, f"{way}memory_copy", nbytes)
    if (case.operation, case.ranks) != ("all_reduce", 2):
        return "in shared memory calibration measures all-reduces of two ranks, no other collective"
    return _measured(record, profile, f"{way}two_rank_all_reduce", nbytes)


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


def _beyond_memory(rate: float, profile: MachineProfile | None) -> float | None:
    """The limit in GB/s when a rate exceeds it or is not finite; None when the rate is possible, or memory was never
    measured."""
    fastest = None if profile is None else profile.bound("memory_copy")
    if fastest is None:
        return None
    limit = CERTAIN_FACTOR * (fastest.value if fastest.high is None else fastest.high) / GIGA
    return limit if not math.isfinite(rate) or rate > limit else None
