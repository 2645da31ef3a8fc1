"""Streams, round trips and trainings: one number per launch from a tool's output or from our own record, in the same
unit and by the same arithmetic."""

from __future__ import annotations

from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import timed, wall_s
from scaleproof.claims.made_up import Event, MadeUp, Wanted, possible, reporting
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_train import train_flop
from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase, TrainCase
from scaleproof.workloads.networks import Network

SECOND = 1e9
GIGA = 1e9


def reported(samples: pd.DataFrame, event: str, nbytes: int | None = None) -> float | None:
    """The value that a tool reported (the value of the event), at a message size."""
    rows = timed(samples, event)
    if nbytes is not None:
        rows = rows[rows["nbytes"] == nbytes]
    return float(rows["value"].median()) if len(rows) else None


def stream_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Bandwidth of a one-way stream, in GB/s.

    stream_bandwidth(n) = bytes of all messages of n bytes / (receiver has the last one - sender hands over the first
    one)

    Messages go in one direction, with a window of messages under way, and each side uses one buffer again and again.
    iperf3 and osu_bw measure this too. It differs from half a round trip ([transfer_bandwidth](transfer_bandwidth.md)),
    since a ping-pong leaves the wire empty between two messages. For a tool, it is the rate that the tool prints; for
    iperf3, the rate that its receiver counts. Each launch gives one number. Suite: crosscheck.
    """
    rows = timed(samples, "stream")
    if rows.empty or getattr(record.case, "sizes", ())[:1] != (nbytes,):
        return reported(samples, "bandwidth", nbytes)
    return float(rows["nbytes"].max() / (rows["end_ns"].max() - rows["start_ns"].min()) * SECOND / GIGA)


def one_way_mean(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Mean of half a round trip, in s.

    one_way_mean(n) = mean over timed round trips of n bytes of (end - start) / 2

    It is a mean, although [transfer_latency](transfer_latency.md) is a median, because mpi4py's benchmark and
    osu_latency print means. A long pause of the machine then affects both sides alike. For a tool, it is the time that
    the tool prints. Suite: crosscheck.
    """
    rows = timed(samples, "transfer")
    rows = rows[rows["nbytes"] == nbytes]
    if rows.empty:
        return reported(samples, "one_way", nbytes)
    return float((rows["end_ns"] - rows["start_ns"]).mean() / 2 / SECOND)


def one_way_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Bandwidth of a message one way, in GB/s.

    one_way_bandwidth(n) = n / one_way_mean(n)

    See [one_way_mean](one_way_mean.md). Suite: crosscheck.
    """
    time_s = one_way_mean(record, samples, nbytes)
    return nbytes / time_s / GIGA if time_s else None


def moves_memory(case: AnyCase) -> bool:
    """Whether its messages are read from memory: buffers that were never written are one page of zeros in the cache."""
    return not isinstance(case, OwnCase) or case.options.get("written") != 0


def training_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Training throughput in samples/s, by the tool's method or ours.

    For our launches: samples of all ranks / (last `end` - first `start` over all ranks), as
    [throughput](throughput.md). For Horovod's synthetic benchmark method: ranks x mean over rounds of (samples of rank
    0 in the round / time of the round on rank 0), warm-up left out. [rank0_excess](rank0_excess.md) shows the effect of
    this difference in calculation alone. Suite: crosscheck. Source of the method: Horovod 0.28.1,
    examples/pytorch/pytorch_synthetic_benchmark.py.
    """
    rate = reported(samples, "rate")
    return rate if rate is not None else common_wall_rate(record, samples)


def training_flop(case: AnyCase) -> float | None:
    """Operations of a training step per sample: of ours, and of a program on the network that its options name."""
    if not isinstance(case, OwnCase) or "workload" not in case.options:
        return train_flop(case)
    network: Network = registry.load("workload", str(case.options["workload"]))(
        None, float(case.options.get("width", 1.0))
    )
    return network.train_flop


def common_wall_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples of all ranks over the time from the first start to the last end."""
    completed, wall = _completed_steps(record, samples), wall_s(record, samples)
    return float(completed["samples"].sum()) / wall if wall and len(completed) else None


def rank0_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Rank 0's samples over the time of its steps, times the number of ranks: Horovod's synthetic benchmarks with one
    round."""
    mine = _completed_steps(record, samples).query("rank == 0")
    if mine.empty:
        return None
    took = (mine["end_ns"].max() - mine["start_ns"].min()) / SECOND
    return float(mine["samples"].sum() / took) * record.case.ranks


def rank0_excess(record: Record, samples: pd.DataFrame) -> float | None:
    """Throughput computed from rank 0 alone, over the throughput of all ranks in the common wall time.

    rank0_excess = (ranks x samples of rank 0 / time of rank 0's steps) / (samples of all ranks / common wall time),
    both of one launch

    A value of 1 means that the ranks are equal, so both calculations give the same result. A value above 1 means that
    rank 0 has more samples than others or finishes earlier. Suite: crosscheck.
    """
    rank0, common = rank0_rate(record, samples), common_wall_rate(record, samples)
    return rank0 / common if rank0 and common else None


def rank0_over_known(record: Record, samples: pd.DataFrame) -> float | None:
    """Throughput computed from rank 0 alone, over the rate that the pace sets.

        rank0_over_known = (ranks x samples of rank 0 / time of rank 0's steps) / known rate
        known rate       = samples of all ranks per step / longest pace of a rank

    The metric is for launches without computation whose steps end at scheduled times. The true rate is then known
    before the measurement. Suite: crosscheck.
    """
    rate, true_rate = rank0_rate(record, samples), known_rate(record)
    return rate / true_rate if rate and true_rate else None


def common_wall_over_known(record: Record, samples: pd.DataFrame) -> float | None:
    """Throughput over the common wall time, over the rate that the pace sets.

    common_wall_over_known = (samples of all ranks / (last end - first start over all ranks)) / known rate

    The known rate is that of [rank0_over_known](rank0_over_known.md). The value is a little below 1, because ranks wake
    up slightly after the scheduled time. Suite: crosscheck.
    """
    rate, true_rate = common_wall_rate(record, samples), known_rate(record)
    return rate / true_rate if rate and true_rate else None


def known_rate(record: Record) -> float | None:
    """Samples per s of a paced case: all ranks' samples over the time of the slowest rank."""
    options = _options(record)
    if "pace_ms_0" not in options:
        return None
    ranks = range(record.case.ranks)
    slowest_s = max(float(options[f"pace_ms_{rank}"]) for rank in ranks) / 1e3
    return float(sum(float(options[f"samples_{rank}"]) for rank in ranks)) / slowest_s


def _completed_steps(record: Record, samples: pd.DataFrame) -> pd.DataFrame:
    """Timed steps with their number of samples."""
    rows = timed(samples, "step").copy()
    case = record.case
    rows["samples"] = case.minibatch // case.ranks if isinstance(case, TrainCase) else rows["value"]
    return rows


def _options(record: Record) -> dict[str, Any]:
    return dict(record.case.options) if isinstance(record.case, OwnCase) else {}


def made_up_bandwidth(wanted: Wanted) -> MadeUp:
    """A message whose mean way takes as long as the bandwidth says."""
    one_way = (wanted.nbytes or 0) / (possible(wanted.known, 1e-30) * GIGA)
    return MadeUp((Event("one_way", ranks=(0,), nbytes=wanted.nbytes or 0, value=one_way),))


def made_up_excess(wanted: Wanted) -> MadeUp:
    """Ranks with steps of 1 s in a common wall time of so many."""
    wall = possible(wanted.known, 1e-9)
    return MadeUp((Event("start"), Event("step", 0.0, 1.0, value=1.0), Event("end", wall, wall)))


def made_up_paced(wanted: Wanted) -> MadeUp:
    """Equal ranks whose rate is so many times the known one, by either calculation."""
    unpaced = MadeUp((Event("start"), Event("step", 0.0, 1.0, value=1.0), Event("end", 1.0, 1.0)))
    took = unpaced.value(rank0_over_known, wanted.case) / possible(wanted.known, 1e-9)
    return MadeUp((Event("start"), Event("step", 0.0, took, value=1.0), Event("end", took, took)))


METRICS = [
    Metric(
        "stream_bandwidth",
        "GB/s",
        "higher",
        size=stream_bandwidth,
        made_up=reporting("bandwidth"),
        moves_one_way=lambda case: True,
    ),
    Metric("one_way_mean", "s", "lower", size=one_way_mean, made_up=reporting("one_way")),
    Metric(
        "one_way_bandwidth",
        "GB/s",
        "higher",
        size=one_way_bandwidth,
        made_up=made_up_bandwidth,
        moves_one_way=moves_memory,
    ),
    Metric(
        "training_rate", "samples/s", "higher", training_rate, flop_per_sample=training_flop, made_up=reporting("rate")
    ),
    Metric("rank0_excess", "1", None, launch=rank0_excess, clocked=True, made_up=made_up_excess),
    *(
        Metric(name, "1", None, launch=of_pace, clocked=True, own_count=True, made_up=made_up_paced)
        for name, of_pace in (
            ("rank0_over_known", rank0_over_known),
            ("common_wall_over_known", common_wall_over_known),
        )
    ),
]
