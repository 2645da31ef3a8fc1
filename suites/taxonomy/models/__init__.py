"""What only this suite needs: the surveys' lower bounds as functions, measured delays against them, and schedules
against the bound of work and depth."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from typing import Annotated

import pandas as pd
from pydantic import AfterValidator, Field

from scaleproof.claims.arithmetic import MOST_WORKERS, Arguments, Published, Workers, Workload, network_of
from scaleproof.claims.finished_launch import SECOND, median_duration_s, timed, times_count
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_wire import link_bytes
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase
from scaleproof.spec.link_rates import least_transmit_s
from scaleproof.spec.registry import nearest
from scaleproof.workloads.networks import Network

from .made_up import made_up_delay, made_up_traffic

MIB = 1 << 20

DELAYS: dict[str, Callable[[int, float, float, float], float]] = {
    "naive_sync_ps": lambda n, t, r, u: 2 * n * t + (n - 1) * r + u,
    "binomial_tree": lambda n, t, r, u: 2 * math.ceil(math.log2(n + 1)) * t + math.ceil(math.log2(n)) * r + u,
    "scatter_reduce_bcast_single_ps": lambda n, t, r, u: (2 + 2 * (n - 1) / n) * t + (n - 1) / n * r + u,
    "async_per_worker": lambda n, t, r, u: 2 * t + u,
    "async_all_workers": lambda n, t, r, u: n * t + u,
    "sharded_ps_k_eq_n_sync": lambda n, t, r, u: 2 * (n - 1) / n * t + (n - 1) / n * r + u / n,
    "recursive_doubling": lambda n, t, r, u: math.ceil(math.log2(n)) * (t + r) + u,
    "ring": lambda n, t, r, u: 2 * (n - 1) / n * t + (n - 1) / n * r + u,
}
"""Langer et al., section 3.4.1: lower bounds of the delay of one exchange, from n workers, T_w to transmit, R_w to
reduce and U_w to update a model (s)."""
SERVED = ("naive_sync_ps", "binomial_tree", "scatter_reduce_bcast_single_ps", "async_per_worker", "async_all_workers")
"""Schemes whose server has a separate rank, the last one."""
SYNCHRONOUS = tuple(name for name in DELAYS if not name.startswith("async"))
MODELS = {"resnet110": 6.7, "vgg_a": 491.0, "resnet152": 223.0}
"""MiB, of Fig. 14 of Langer et al."""
LINKS = {"10GbE": 10e9 / 8, "QDR": 32e9 / 8}
"""Bytes/s of Fig. 14's networks: Ethernet's rate, and InfiniBand QDR's data rate of 4 lanes of 8 Gbit/s."""
REDUCE_RATE, UPDATE_RATE = 10 * 2**30, 2 * 2**30
"""Bytes/s of Fig. 14."""


def _one_of(names: Iterable[str]) -> AfterValidator:
    known = list(names)

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(f"unknown name {name!r}; {nearest(name, known)}")
        return name

    return AfterValidator(check)


class Schedules(Arguments):
    """Which training steps are scheduled on how many workers."""

    workloads: list[Workload] = Field(description="Networks.")
    workers: int = Field(ge=1, le=256, description="Largest number of workers.")


class UpToWorkers(Arguments):
    """Numbers of workers, from 3."""

    workers: int = Field(ge=3, le=MOST_WORKERS, description="Largest number of workers.")


class Fig14(Arguments):
    """A point of Fig. 14 of Langer et al."""

    scheme: Annotated[str, _one_of(DELAYS)] = Field(description="The scheme of the exchange.")
    workers: Workers = Field(description="Workers (n).")
    model: Annotated[str, _one_of(MODELS)] = Field(description="The model that is exchanged.")
    network: Annotated[str, _one_of(LINKS)] = Field(description="The network.")


def traffic_per_node(workers: int, nbytes: float) -> float:
    """Bytes that each of n workers sends when each worker is the server of one part."""
    return 2 * (workers - 1) / workers * nbytes


def all_reduce_bound(ranks: int, nbytes: float, latency_s: float, s_per_byte: float) -> float:
    """Ben-Nun and Hoefler, section 2.5: L log2 P + gamma m G (P - 1) / P seconds; gamma m are the bytes."""
    return latency_s * math.log2(ranks) + nbytes * s_per_byte * (ranks - 1) / ranks


# --- Metrics over launches
# -------------------------------------------------------------------------------------------------------------------


def delay_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of one exchange in s, from the first rank's start to the last rank's end, on one clock.

    delay_s = median over exchanges of (last rank's end - first rank's start) / rounds

    An exchange moves one model under a scheme of suite taxonomy, from all gradients ready to all parameters new.
    `rounds` is 1, except for the asynchronous server, which serves five rounds of every worker without a pause.
    """
    rows = timed(samples, "delay")
    if rows.empty or not times_count(record):
        return None
    broadcasts = rows.groupby("step").agg({"start_ns": "min", "end_ns": "max", "value": "max"})
    return float(((broadcasts["end_ns"] - broadcasts["start_ns"]) / broadcasts["value"]).median()) / SECOND


def delay_over_bound(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of an exchange over its lower bound.

    delay_over_bound = delay_s / lower bound of the scheme (Langer et al., section 3.4.1)

    The bound uses T_w, R_w and U_w. T_w is the least time in which a link as set passes the model as TCP payload: of
    1514 bytes that it counts 1448 are payload, and its token bucket (1 ms at its rate) passes at once. R_w and U_w are
    medians of the times that reducing and updating a whole model take in the same launch. A value of 1 is the least
    possible; below it the link does not have the rate that was set.
    """
    delay, bound = delay_s(record, samples), delay_bound(record, samples)
    return delay / bound if delay and bound else None


def delay_bound(record: Record, samples: pd.DataFrame) -> float | None:
    """Lower bound of the delay by the scheme's formula, in s; None where a duration or the link rate is missing."""
    case = record.case
    reduce, update = (median_duration_s(timed(samples, event)) for event in ("reduce", "update"))
    if not isinstance(case, OwnCase) or case.value("fabric.link_mbit") is None or reduce is None or update is None:
        return None
    transmit = least_transmit_s(case.sizes[0], case.value("fabric.link_mbit"))
    return DELAYS[str(case.options["scheme"])](_workers(case), transmit, reduce, update)


def all_reduce_over_bound(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of an exchange over the lower bound of an all-reduce by Ben-Nun and Hoefler.

    all_reduce_over_bound = delay_s / (L log2 P + T_w (P - 1) / P)

    The bound is from section 2.5 of their survey. L is the delay set on the links, P the number of workers, T_w the
    least time in which a link passes the bytes, as in [delay_over_bound](delay_over_bound.md).
    """
    case, delay = record.case, delay_s(record, samples)
    if not isinstance(case, OwnCase) or case.value("fabric.link_mbit") is None or delay is None:
        return None
    return delay / all_reduce_bound(
        _workers(case),
        case.sizes[0],
        case.value("fabric.link_delay_ms", 0.0) / 1e3,
        least_transmit_s(case.sizes[0], case.value("fabric.link_mbit")) / case.sizes[0],
    )


def traffic_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes on the busiest worker's link in one exchange, over 2 (n - 1) / n of the model.

    traffic_ratio = bytes that the interfaces of the busiest worker's node counted / exchanges / (2 (n - 1) / n x bytes
    of the model)

    The bytes are those of [wire_bytes_ratio](wire_bytes_ratio.md), in the timed region. All exchanges in this region
    are counted, warm-up included. Headers are up to a tenth of the bytes. A value between 1 and 1.1 is what each node
    sends when each of the n workers is the server of one part of the model.
    """
    case, rows, counted = record.case, samples[samples["event"] == "delay"], link_bytes(record)
    if not isinstance(case, OwnCase) or rows.empty or counted is None:
        return None
    workers = _workers(case)
    exchanges = rows.loc[rows["rank"] == 0, "value"].sum()
    busiest = max(nbytes for rank, nbytes in counted.items() if rank < workers)
    return float(busiest / exchanges) / traffic_per_node(workers, case.sizes[0])


# --- Metrics of arithmetic
# -------------------------------------------------------------------------------------------------------------------


def schedules_outside(x: Schedules, rows: Published) -> float:
    """Number of greedy schedules whose length lies outside the bounds by work and depth.

    schedules_outside = greedy schedules with T_p outside of max{W / p, D} <= T_p <= W / p + D

    W is the number of multiply-accumulates of a training step of one sample. D is the length of the longest path
    through its operations. T_p is the length of a greedy schedule of these operations on p workers. The row's `x` has
    the workloads, and `workers`: p runs from 1 to it. Arithmetic, no launches.
    """
    outside = 0
    for workload in x.workloads:
        operations = training_step(network_of(workload))
        work, depth = sum(cost for cost, _ in operations), longest_path(operations)
        for workers in range(1, x.workers + 1):
            took = greedy_schedule(operations, workers)
            outside += not max(work / workers, depth) <= took * (1 + 1e-9) or not took <= (work / workers + depth) * (
                1 + 1e-9
            )
    return float(outside)


Operations = list[tuple[float, list[int]]]
"""For each operation: its cost, and the indices of the operations that must finish before it."""


def training_step(network: Network) -> Operations:
    """A network's forward pass and its gradients, layer by layer, in an order in which each can run; costs are
    multiply-accumulates of one sample."""
    layers, input_indices = network.layers, network.input_indices
    operations: Operations = [
        (layer.mac, [index - 1 for index in read if index]) for layer, read in zip(layers, input_indices, strict=True)
    ]
    readers: list[list[int]] = [
        [later for later, read in enumerate(input_indices) if index + 1 in read] for index in range(len(layers))
    ]
    input_gradient: dict[int, int] = {}
    for index in reversed(range(len(layers))):
        needed = [index, *(input_gradient[later] for later in readers[index])]
        if layers[index].variables:
            operations.append((layers[index].mac, needed))
        input_gradient[index] = len(operations)
        operations.append((layers[index].input_mac, needed))
    return operations


def longest_path(operations: Operations) -> float:
    """Length of the longest path through the operations (D of `schedules_outside`)."""
    ends: list[float] = []
    for cost, needed in operations:
        ends.append(cost + max((ends[other] for other in needed), default=0.0))
    return max(ends)


def greedy_schedule(operations: Operations, workers: int) -> float:
    """Length of a schedule in which no worker is idle while an operation could run (T_p of `schedules_outside`)."""
    waiting = [len(set(needed)) for _, needed in operations]
    after: list[list[int]] = [[] for _ in operations]
    for number, (_, needed) in enumerate(operations):
        for other in set(needed):
            after[other].append(number)
    ready = [number for number, missing in enumerate(waiting) if not missing]
    running: list[tuple[float, int]] = []
    clock = 0.0
    while ready or running:
        while ready and len(running) < workers:
            number = heapq.heappop(ready)
            heapq.heappush(running, (clock + operations[number][0], number))
        clock, finished = heapq.heappop(running)
        for number in after[finished]:
            waiting[number] -= 1
            if not waiting[number]:
                heapq.heappush(ready, number)
    return clock


def naive_worst_share(x: UpToWorkers, rows: Published) -> float:
    """Share of cases in which the naive synchronous server is the slowest scheme by its bound.

    naive_worst_share = cases in which the naive synchronous server has the longest bound / cases

    The cases are the models and networks of Fig. 14 of Langer et al. with 3 to 64 workers (the row's `x` has the
    largest number, `workers`). Only synchronous schemes are compared. Arithmetic, no launches.
    """
    shares = []
    for nbytes in (size * MIB for size in MODELS.values()):
        for rate in LINKS.values():
            for workers in range(3, x.workers + 1):
                bounds = {
                    name: DELAYS[name](workers, nbytes / rate, nbytes / REDUCE_RATE, nbytes / UPDATE_RATE)
                    for name in SYNCHRONOUS
                }
                shares.append(max(bounds, key=lambda name: bounds[name]) == "naive_sync_ps")
    return sum(shares) / len(shares)


def fig14_delay(x: Fig14, rows: Published) -> float:
    """Lower bound of a scheme's delay, in s.

    fig14_delay = lower bound of a scheme with the rates of Fig. 14 of Langer et al.

    Reducing at 10 GiB/s and updating at 2 GiB/s; 10 Gbit/s Ethernet, or 32 Gbit/s of InfiniBand QDR. Arithmetic, no
    launches. The row's `x` has scheme, workers, model and network.
    """
    nbytes = MODELS[x.model] * MIB
    return DELAYS[x.scheme](x.workers, nbytes / LINKS[x.network], nbytes / REDUCE_RATE, nbytes / UPDATE_RATE)


def _workers(case: OwnCase) -> int:
    return case.ranks - (case.options["scheme"] in SERVED)


def _least_traffic(case: OwnCase) -> float:
    return traffic_per_node(_workers(case), case.sizes[0])


METRICS = [
    Metric("delay_s", "s", "lower", launch=delay_s, made_up=made_up_delay(delay_s)),
    Metric(
        "delay_over_bound",
        "1",
        "lower",
        launch=delay_over_bound,
        clocked=True,
        made_up=made_up_delay(delay_over_bound),
    ),
    Metric(
        "all_reduce_over_bound",
        "1",
        "lower",
        launch=all_reduce_over_bound,
        clocked=True,
        made_up=made_up_delay(all_reduce_over_bound),
    ),
    Metric("traffic_ratio", "1", None, launch=traffic_ratio, made_up=made_up_traffic(_least_traffic)),
    Metric("schedules_outside", "schedules", "lower", model=schedules_outside, x=Schedules),
    Metric("naive_worst_share", "fraction", None, model=naive_worst_share, x=UpToWorkers),
    Metric("fig14_delay", "s", "lower", model=fig14_delay, x=Fig14),
]
