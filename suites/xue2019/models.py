"""What only this paper needs: times and ratios of its micro-benchmark, what a tensor took, gains of a mini-batch,
births, and the sizes of its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.finished_launch import Launch, timed
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_train import throughput
from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.networks import Network

SECOND = 1e9
MIB = 1 << 20
FLOAT = 4
"""Bytes of a float32."""
Rows = Mapping[str, PublishedRow]


def send_reduce_s(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Median s from the start of a tensor's send until its largest element is known where the clock is."""
    return _median_s(samples, "send_reduce", nbytes)


def send_reduce_gbs(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """GB/s: the tensor's bytes over that time."""
    seconds = send_reduce_s(record, samples, nbytes)
    return nbytes / seconds / 1e9 if seconds else None


def per_tensor(record: Record, samples: pd.DataFrame, nbytes: int, what: str) -> float | None:
    """What moving one tensor took at both ends together: a counter of remote/tensor_channel.py's TransferCounts over
    the tensors that were sent. None for the copies of a transport's own messages, which are made below what is
    counted."""
    if what == "copies" and getattr(record.case, "options", {}).get("mechanism") == "messages":
        return None
    found = [
        status.facts["costs"][str(nbytes)] for status in record.ranks if str(nbytes) in status.facts.get("costs", {})
    ]
    tensors = sum(cost["tensors"] for cost in found)
    return sum(cost[what] for cost in found) / tensors if tensors else None


def extreme_speedup(launch: Launch, base: Launch, which: Any) -> float | None:
    """The base's time over the launch's, at the message size where that is smallest or largest."""
    found = []
    for nbytes in getattr(launch.record.case, "sizes", ()):
        ours, theirs = (send_reduce_s(one.record, one.samples, nbytes) for one in (launch, base))
        if ours and theirs:
            found.append(theirs / ours)
    return which(found) if found else None


def largest_gain(launches: Sequence[Launch], base: str, percent: bool) -> float | None:
    """Of one repetition: training throughput by zero copy over that of another arm, for the model and batch size where
    it is largest."""
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for launch in launches:
        case, rate = launch.record.case, throughput(launch.record, launch.samples)
        if isinstance(case, TrainCase) and rate:
            found.setdefault((case.workload, case.width, case.image_side, case.minibatch), {})[case.arm] = rate
    ratios = [rates["zero_copy"] / rates[base] for rates in found.values() if rates.keys() >= {"zero_copy", base}]
    if not ratios:
        return None
    return 100 * (max(ratios) - 1) if percent else max(ratios)


def throughput_gain(launch: Launch, base: Launch) -> float | None:
    """By how many % the launch's training throughput is above the base's."""
    ours, theirs = (throughput(one.record, one.samples) for one in (launch, base))
    return 100 * (ours / theirs - 1) if ours and theirs else None


def minibatch_gain(record: Record, samples: pd.DataFrame, over: str) -> float | None:
    """Mini-batch time by another mechanism over that by zero copy, in the same launch."""
    ours, theirs = _median_s(samples, "minibatch_zero_copy"), _median_s(samples, f"minibatch_{over}")
    return theirs / ours if ours and theirs else None


def copied_share(record: Record, samples: pd.DataFrame, first: bool) -> float | None:
    """Share of the tensors sent that had to be copied, in the first step or in all later ones."""
    rows = samples[samples["event"].isin(["born_copied", "born_placed"])]
    rows = rows[(rows["step"] == 0) == first]
    total = rows["value"].sum()
    return float(rows.loc[rows["event"] == "born_copied", "value"].sum() / total) if total else None


def fact_count(record: Record, samples: pd.DataFrame, name: str) -> float | None:
    """A number that rank 0 found and kept."""
    found = record.ranks[0].facts.get("found", {}).get(name) if record.ranks else None
    return None if found is None else float(found)


def model_size(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: MiB of the layer-exact network's parameters in float32."""
    return _network(x).parameters * FLOAT / MIB


def tensor_count(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: the number of tensors that hold them."""
    return len(_network(x).parameter_shapes)


def _network(x: Mapping[str, Any]) -> Network:
    network: Network = registry.load("workload", x["workload"])(None, 1.0)
    return network


def _median_s(samples: pd.DataFrame, event: str, nbytes: int | None = None) -> float | None:
    rows = timed(samples, event)
    if nbytes is not None:
        rows = rows[rows["nbytes"] == nbytes]
    return float((rows["end_ns"] - rows["start_ns"]).median()) / SECOND if len(rows) else None


METRICS = [
    Metric("send_reduce_s", "s", "lower", size=send_reduce_s),
    Metric("send_reduce_gbs", "GB/s", "higher", size=send_reduce_gbs),
    Metric("copies_per_tensor", "1", "lower", size=partial(per_tensor, what="copies")),
    Metric("messages_per_tensor", "1", "lower", size=partial(per_tensor, what="messages")),
    Metric("round_trips_per_tensor", "1", "lower", size=partial(per_tensor, what="round_trips")),
    Metric("processor_s_per_tensor", "s", "lower", size=partial(per_tensor, what="processor_s")),
    Metric("least_speedup", "x", "higher", pair=partial(extreme_speedup, which=min), clocked=True),
    Metric("largest_speedup", "x", "higher", pair=partial(extreme_speedup, which=max), clocked=True),
    Metric("throughput_gain", "%", "higher", pair=throughput_gain, clocked=True),
    Metric(
        "largest_training_speedup",
        "x",
        "higher",
        block=partial(largest_gain, base="tensorflow_grpc", percent=False),
        clocked=True,
    ),
    Metric(
        "largest_throughput_gain", "%", "higher", block=partial(largest_gain, base="rpc", percent=True), clocked=True
    ),
    Metric("gain_over_rpc", "x", "higher", launch=partial(minibatch_gain, over="rpc"), clocked=True),
    Metric("gain_over_copy", "x", "higher", launch=partial(minibatch_gain, over="copy"), clocked=True),
    Metric("copied_share_first", "fraction", "lower", launch=partial(copied_share, first=True)),
    Metric("copied_share_later", "fraction", "lower", launch=partial(copied_share, first=False)),
    Metric("fails", "bool", "lower", launch=partial(fact_count, name="fails")),
    Metric("refused", "bool", "higher", launch=partial(fact_count, name="refused")),
    Metric("static_edges_share", "fraction", "higher", launch=partial(fact_count, name="static_edges_share")),
    Metric("model_size", "MiB", None, model=model_size),
    Metric("tensor_count", "count", None, model=tensor_count),
]
