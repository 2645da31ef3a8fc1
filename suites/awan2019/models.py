"""Metrics of this paper only: which class wins in each configuration, whether throughput follows the all-reduce, what
the pointer cache saves, and how many bytes a server moves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from scaleproof.claims.beyond_floor import FloorRange, orders, sign, wins
from scaleproof.claims.finished_launch import SECOND, Launch, timed, wall_s
from scaleproof.claims.made_up import Event, MadeUp, Wanted, lasting, possible, trained, with_facts
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.claims.metrics_train import throughput
from scaleproof.core.record_schema import Record
from scaleproof.record.wire import traffic_by_namespace
from scaleproof.spec.case import CollectiveCase, OwnCase, TrainCase

GRPC_BASED = ("tensorflow_grpc_ps", "grpc_ps", "grpc_mpi_ps", "grpc_rdma_ps", "grpc_shm_ps")
"""Arms of the classes gRPC and gRPC+X. `tensorflow_mirrored`, an all-reduce over gRPC, belongs to neither class: the
classes of the paper use parameter servers."""
NO_GRPC = ("baidu_ring_mpi", "horovod_mpi", "horovod_gloo", "nccl")
MEMBERS = {
    "baidu_ring_mpi": "ring_mpi_allreduce",
    "horovod_mpi": "horovod_mpi_allreduce",
    "horovod_gloo": "horovod_gloo_allreduce",
    "mpi": "mpi_allreduce",
    "gloo": "gloo_allreduce",
}
"""No-gRPC arms that train, and the arms that measure their all-reduce alone."""


def _throughputs(block: Sequence[Launch]) -> dict[tuple[str, str], float]:
    """Samples per s by network and arm."""
    throughputs = {}
    for launch in block:
        case = launch.record.case
        if isinstance(case, TrainCase) and (value := throughput(launch.record, launch.samples)) is not None:
            throughputs[case.workload, case.arm] = value
    return throughputs


def _configurations(block: Sequence[Launch], floor: float | None) -> dict[str, list[int]]:
    """By network, for each pair of a No-gRPC and a gRPC-based arm that both trained it: 1 where No-gRPC was faster by
    more than the floor, -1 where it was slower by more, else 0."""
    throughputs = _throughputs(block)
    signs: dict[str, list[int]] = {}
    for network, ours, theirs in product(sorted({network for network, _ in throughputs}), NO_GRPC, GRPC_BASED):
        if (network, ours) in throughputs and (network, theirs) in throughputs:
            signs.setdefault(network, []).append(sign(throughputs[network, ours], throughputs[network, theirs], floor))
    return signs


def no_grpc_wins(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """Share of configurations in which No-gRPC is faster by more than the noise floor.

    no_grpc_wins = mean over networks of (configurations won by No-gRPC / configurations), in one repetition

    A configuration is a network with a No-gRPC arm (Baidu's ring, Horovod over MPI or Gloo, NCCL) and a gRPC-based arm
    (gRPC or gRPC+X) that both trained it in that repetition. No-gRPC wins it when the [throughput](throughput.md) of
    its arm is higher by more than the machine's noise floor of throughput. Within the floor nobody wins, but either arm
    could be faster. If a claim fails only because such configurations do not count as won, it is inconclusive. Every
    network counts equally, however many arms trained it. Each repetition gives one value, so the interval shows how
    steady the share is. [no_grpc_configurations](no_grpc_configurations.md) is the number of configurations. Arms that
    cannot run here are in no configuration.
    """
    signs = _configurations(block, floor)
    return wins(list(signs.values())) if signs else None


def no_grpc_configurations(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Number of configurations.

    no_grpc_configurations = pairs (network, No-gRPC arm, gRPC-based arm) that both finished, in one repetition

    This is the number of comparisons behind [no_grpc_wins](no_grpc_wins.md). If it is below the planned number, some
    launches did not run.
    """
    return float(sum(map(len, _configurations(block, None).values()))) or None


def allreduce_rank_correlation(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """Rank correlation of throughput with the speed of the all-reduce at its largest size, over the No-gRPC arms that
    trained a network. None below three arms.

    allreduce_rank_correlation = mean over networks of Spearman's rho between throughput and 1 / latency of the
    all-reduce, over the No-gRPC arms that trained the network, in one repetition

    The latency is that of the same transport alone, at the largest size of the `*_allreduce` arms (program
    `collective`). The throughput is that of the arm which trains over this transport. Which of two arms is ahead is
    known only where they differ by more than the noise floor. So rho is computed for all orders of the arms that the
    floor leaves open, on both sides. The value is their mean, and the smallest and the largest rho say what noise could
    make of it: a claim whose bound lies between them is inconclusive. Without a floor this is Spearman's rho. Arms are
    ranked within a network, never across networks, and every network counts equally. A network that fewer than three
    arms trained does not count. A value of 1 means that an arm with a faster all-reduce always trains faster. With one
    network and five arms only few values are possible: two arms that swap places change the value by 0.1 or more.
    """
    speeds = _all_reduce_speeds(block)
    by_network: dict[str, list[tuple[float, float]]] = {}
    for (network, arm), rate in _throughputs(block).items():
        if (alone := MEMBERS.get(arm)) in speeds:
            by_network.setdefault(network, []).append((rate, speeds[alone]))
    correlations = [_correlation(pairs, floor) for pairs in by_network.values() if len(pairs) >= 3]
    return FloorRange.mean(correlations) if correlations else None


def _correlation(pairs: Sequence[tuple[float, float]], floor: float | None) -> FloorRange:
    """Spearman's rho of every order of the rates with every order of the speeds that the floor leaves open."""
    by_rate, by_speed = (np.array(orders(column, floor), float) for column in zip(*pairs, strict=True))
    centred = by_rate - by_rate.mean(axis=1, keepdims=True)
    rhos = centred @ by_speed.T / (centred[0] ** 2).sum()
    return FloorRange(float(rhos.mean()), float(rhos.min()), float(rhos.max()))


def _all_reduce_speeds(block: Sequence[Launch]) -> dict[str, float]:
    """All-reduces per second at the largest size, by arm of program `collective`."""
    speeds = {}
    for launch in block:
        case = launch.record.case
        if isinstance(case, CollectiveCase) and len(table := by_size(launch.record, launch.samples)):
            speeds[case.arm] = 1 / float(table.loc[table["nbytes"] == max(case.sizes), "time_s"].iloc[0])
    return speeds


def _query_counts(record: Record, nbytes: int | None = None) -> tuple[int, int] | None:
    """Queries and messages of rank 0's timed calls."""
    sizes = record.ranks[0].facts.get("pointer_cache", {}).get("sizes", {}) if record.ranks else {}
    if not sizes:
        return None
    chosen = [counts for size, counts in sizes.items() if nbytes is None or int(size) == nbytes]
    return sum(counts["queries"] for counts in chosen), sum(counts["messages"] for counts in chosen)


def queries_per_message(record: Record, samples: pd.DataFrame) -> float | None:
    """Driver queries per message, in timed calls.

    queries_per_message = queries of the driver / messages, in timed calls on rank 0

    A query asks the driver for the kind of a buffer. A message is a buffer that was sent or received into. Both are
    counts, not times: the value does not depend on what a query costs.
    """
    queries = _query_counts(record)
    return queries[0] / queries[1] if queries and queries[1] else None


def reduce_latency(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Latency of an all-reduce in the suite's own programs.

    reduce_latency = median over timed calls of the slowest rank's all-reduce, at one size

    It is measured in the own programs of suite awan2019, as [collective_latency](collective_latency.md) is in program
    `collective`. In the emulated arms, the case sets the cost of a query or of a copy to the device. Times of these
    arms show what follows from that cost. They say nothing about hardware.
    """
    if not isinstance(record.case, OwnCase):
        return None
    rows = timed(samples, "all_reduce")
    rows = rows[rows["nbytes"] == nbytes]
    return (
        float((rows["end_ns"] - rows["start_ns"]).groupby(rows["step"]).max().median()) / SECOND if len(rows) else None
    )


def server_bytes_per_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes that the interface carried per second of training, to and from a single parameter server.

    server_bytes_per_s = bytes that the launch's interface sent in the timed steps / their common wall time

    In each step, a server receives gradients from every worker other than itself and sends parameters to it. On one
    machine all of this passes one interface, whose counter the kernel keeps, with headers and acknowledgements. The
    value exists for one server and ranks that share an interface, over a transport of sockets. It is what a server
    moved, not what it could move: while workers compute, it moves nothing.
    """
    servers = record.ranks[0].facts.get("parameter_server", {}).get("servers") if record.ranks else None
    paths = {capabilities["path"] for capabilities in record.transport.get("ranks", []) if capabilities}
    nodes, seconds = traffic_by_namespace(record.network), wall_s(record, samples)
    if servers != 1 or record.case.ranks < 2 or paths != {"socket"} or len(nodes) != 1 or not seconds:
        return None
    return nodes[0].sent_bytes[record.case.interface] / seconds


def fused_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of tensors that were all-reduced together with others, in a traced launch.

    fused_share = tensors that were copied into the fusion buffer / tensors that were all-reduced, from Horovod's
    timeline on rank 0

    A tensor is copied into the fusion buffer only if it shares its all-reduce with others. The value comes from
    launches with `tracing: full`, whose times are not used. Barriers count as tensors.
    """
    fusion = record.ranks[0].facts.get("horovod", {}).get("fusion") if record.ranks else None
    return fusion["fused"] / fusion["tensors"] if fusion and fusion["tensors"] else None


def made_up_training(wanted: Wanted) -> MadeUp:
    """A block in which No-gRPC wins everywhere (a value of 0.5 and above) or nowhere."""
    ahead = 10.0 if possible(wanted.known, 0, 1) >= 0.5 else 0.1
    return trained(wanted.case, 1000.0 * (ahead if wanted.case.arm in NO_GRPC else 1.0))


def made_up_ranking(wanted: Wanted) -> MadeUp:
    """A block in which throughput follows the all-reduce in every network (a value above 0), or its reverse."""
    case, alone = wanted.case, list(MEMBERS.values())
    named = MEMBERS.get(case.arm, case.arm)
    place = 10.0 ** (alone.index(named) if named in alone else 0)
    if isinstance(case, CollectiveCase):
        return MadeUp((Event(case.operation, 0.0, 0.001 * place, nbytes=max(case.sizes)),))
    forwards = possible(wanted.known, -1, 1) > 0
    return trained(case, 1000.0 / place if forwards else 1000.0 * place)


def made_up_queries(queries_per_message: float, wanted: Wanted) -> dict[str, object]:
    """Facts of a million messages."""
    messages = 1_000_000
    counts = {"queries": round(possible(queries_per_message) * messages), "messages": messages}
    return {"pointer_cache": {"sizes": {"1024": counts}}}


def made_up_fusion(fused_share: float, wanted: Wanted) -> dict[str, object]:
    """Facts of a million tensors."""
    tensors = 1_000_000
    return {"horovod": {"fusion": {"fused": round(possible(fused_share, 0, 1) * tensors), "tensors": tensors}}}


METRICS = [
    Metric(
        "no_grpc_wins",
        "fraction",
        "higher",
        block=no_grpc_wins,
        clocked=True,
        noise_of=("throughput",),
        noise="inside",
        made_up=made_up_training,
    ),
    Metric("no_grpc_configurations", "1", None, block=no_grpc_configurations),
    Metric(
        "allreduce_rank_correlation",
        "1",
        "higher",
        block=allreduce_rank_correlation,
        clocked=True,
        noise_of=("throughput", "collective_latency"),
        noise="inside",
        made_up=made_up_ranking,
        range=(-1, 1),
    ),
    Metric(
        "queries_per_message",
        "1",
        "lower",
        launch=queries_per_message,
        own_count=True,
        made_up=with_facts(made_up_queries),
    ),
    Metric("reduce_latency", "s", "lower", size=reduce_latency, made_up=lasting("all_reduce")),
    Metric("server_bytes_per_s", "B/s", "higher", launch=server_bytes_per_s),
    Metric("fused_share", "fraction", None, launch=fused_share, made_up=with_facts(made_up_fusion)),
]
