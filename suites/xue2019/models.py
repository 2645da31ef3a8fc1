"""Metrics of this paper only: times and ratios of its micro-benchmark, costs per tensor, gains of a mini-batch,
allocations in send buffers, and the sizes of its models."""

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
    """Median s from the start of a tensor's send until its largest element is known where the clock is.

    send_reduce_s(n) = median time of one tensor of n bytes: sent by rank 0, its largest element found by rank 1 and
    told

    The clock runs on one rank. For our own transports it is the sender's: from the start of the send until the answer,
    a tensor of one element by the same mechanism, is there. For TensorFlow's runtime it is the receiver's, whose
    session asks for the tensor: from the start of the step until the number is there. Both are one small message, the
    tensor, and the reduction, one after the other. The reduction is part of it, as in the paper; event `reduce_max`
    has it alone where rank 1 is ours. Connecting, registering memory and the first tensor of a size are outside. One
    number per launch and size. Suite: xue2019.
    """
    return _median_s(samples, "send_reduce", nbytes)


def send_reduce_gbs(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """GB/s: the tensor's bytes over that time.

    send_reduce_gbs(n) = n / [send_reduce_s](send_reduce_s.md)(n)

    Bytes of the tensor over the whole time, the reduction and the answer included: below what the transport moves.
    """
    seconds = send_reduce_s(record, samples, nbytes)
    return nbytes / seconds / 1e9 if seconds else None


def per_tensor(record: Record, samples: pd.DataFrame, nbytes: int, counter: str) -> float | None:
    """A counter of remote/tensor_channel.py's TransferCounts, summed over both ends, per tensor sent. None for copies
    of a transport's own messages, which are not counted."""
    if counter == "copies" and getattr(record.case, "options", {}).get("mechanism") == "messages":
        return None
    costs = [
        status.facts["costs"][str(nbytes)] for status in record.ranks if str(nbytes) in status.facts.get("costs", {})
    ]
    tensors = sum(cost["tensors"] for cost in costs)
    return sum(cost[counter] for cost in costs) / tensors if tensors else None


def extreme_speedup(launch: Launch, base: Launch, extreme: Any) -> float | None:
    """The base's time over the launch's, at the message size where that is smallest or largest."""
    ratios = []
    for nbytes in getattr(launch.record.case, "sizes", ()):
        launch_s = send_reduce_s(launch.record, launch.samples, nbytes)
        base_s = send_reduce_s(base.record, base.samples, nbytes)
        if launch_s and base_s:
            ratios.append(base_s / launch_s)
    return extreme(ratios) if ratios else None


def largest_gain(launches: Sequence[Launch], base: str, percent: bool) -> float | None:
    """Largest ratio in one repetition, over models and batch sizes, of training throughput by zero copy to that of
    another arm."""
    throughputs: dict[tuple[Any, ...], dict[str, float]] = {}
    for launch in launches:
        case, rate = launch.record.case, throughput(launch.record, launch.samples)
        if isinstance(case, TrainCase) and rate:
            throughputs.setdefault(
                (case.workload, case.workload_options.width, case.workload_options.image_side, case.minibatch), {}
            )[case.arm] = rate
    ratios = [rates["zero_copy"] / rates[base] for rates in throughputs.values() if rates.keys() >= {"zero_copy", base}]
    if not ratios:
        return None
    return 100 * (max(ratios) - 1) if percent else max(ratios)


def throughput_gain(launch: Launch, base: Launch) -> float | None:
    """By how many % the launch's training throughput is above the base's.

    throughput_gain = 100 * (throughput of the launch / throughput of the base - 1)

    [throughput](throughput.md) of launches paired by repetition. 169 % more is 2.69 times as much, not 1.69 times.
    """
    rate, base_rate = throughput(launch.record, launch.samples), throughput(base.record, base.samples)
    return 100 * (rate / base_rate - 1) if rate and base_rate else None


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
    """A number that rank 0 recorded."""
    count = record.ranks[0].facts.get("found", {}).get(name) if record.ranks else None
    return None if count is None else float(count)


def model_size(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: MiB of the layer-exact network's parameters in float32.

    model_size = parameters of the layer-exact network * 4 bytes / 2^20

    Arithmetic on the layer tables in harness/scaleproof/workloads, nothing is run. Inception-v3 has its auxiliary
    head, 10 classes and of each batch normalisation only the offset; LSTM and GRU have one bias per gate.
    """
    return _network(x).parameters * FLOAT / MIB


def tensor_count(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: the number of tensors that hold them.

    tensor_count = number of tensors that hold the parameters of the layer-exact network

    Arithmetic on the layer tables in harness/scaleproof/workloads, nothing is run. Moments of batch normalisation are
    no parameters.
    """
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
    Metric(
        "copies_per_tensor",
        "1",
        "lower",
        size=partial(per_tensor, counter="copies"),
        doc="""
        copies_per_tensor(n) = copies of a payload that the mechanism made in the memory of either end / tensors sent

        Counted where the copy is made (harness/scaleproof/remote), over the timed tensors of n bytes. A transport's
        own messages have no value: what gRPC, a socket or a kernel copies is made below what is counted; a socket
        copies at least once at each end, and gRPC serialises beside that. Writing into another rank's memory is the
        transfer itself, no copy.
        """,
    ),
    Metric(
        "messages_per_tensor",
        "1",
        "lower",
        size=partial(per_tensor, counter="messages"),
        doc="""
        messages_per_tensor(n) = messages before the receiver has the tensor / tensors sent, both ends together

        Sends, one-sided writes and reads, and requests. What tells the sender afterwards that memory is free again is
        counted apart and not in here: nobody who holds a tensor waits for it. A control message acknowledged one
        tensor later makes a launch's mean a little more than a whole number.
        """,
    ),
    Metric(
        "round_trips_per_tensor",
        "1",
        "lower",
        size=partial(per_tensor, counter="round_trips"),
        doc="""
        round_trips_per_tensor(n) = times that an end asked and needed the answer before the receiver had the tensor /
        tensors sent

        One-sided reads and requests. An answer of the program (the largest element) is a tensor of its own and counted
        there.
        """,
    ),
    Metric(
        "processor_s_per_tensor",
        "s",
        "lower",
        size=partial(per_tensor, counter="processor_s"),
        doc="""
        processor_s_per_tensor(n) = processor time of both ranks during the timed tensors of n bytes / tensors sent

        User and system time of all threads. Whoever polls a flag uses a core while it waits, so this is no measure of
        work done: it says what the time of [send_reduce_s](send_reduce_s.md) was paid with.
        """,
    ),
    Metric(
        "least_speedup",
        "x",
        "higher",
        pair=partial(extreme_speedup, extreme=min),
        clocked=True,
        doc="""
        least_speedup = smallest ratio over message sizes of the base's [send_reduce_s](send_reduce_s.md) to the
        launch's

        Launches are paired by repetition; each pair gives one number, at the size where the gain is smallest. Minima
        and maxima over sizes are biased outwards by noise, the more the more sizes there are.
        """,
    ),
    Metric(
        "largest_speedup",
        "x",
        "higher",
        pair=partial(extreme_speedup, extreme=max),
        clocked=True,
        doc="""
        largest_speedup = largest ratio over message sizes of the base's [send_reduce_s](send_reduce_s.md) to the
        launch's

        As [least_speedup](least_speedup.md), at the size where the gain is largest.
        """,
    ),
    Metric("throughput_gain", "%", "higher", pair=throughput_gain, clocked=True),
    Metric(
        "largest_training_speedup",
        "x",
        "higher",
        block=partial(largest_gain, base="tensorflow_grpc", percent=False),
        clocked=True,
        doc="""
        largest_training_speedup = max over models and batch sizes of (throughput by zero copy / throughput by
        TensorFlow's own runtime)

        One number per repetition, of all its launches together: "up to" in the paper's words. A maximum of noisy
        ratios is biased upwards, the more the more models and batch sizes there are: the table of the experiment shows
        all of them. The unit of throughput is samples per second, the framework differs (PyTorch by zero copy): see
        the claim's deviations.
        """,
    ),
    Metric(
        "largest_throughput_gain",
        "%",
        "higher",
        block=partial(largest_gain, base="rpc", percent=True),
        clocked=True,
        doc="""
        largest_throughput_gain = 100 * (max over models and batch sizes of (throughput by zero copy / throughput by
        RPC over the same device) - 1)

        One number per repetition, as [largest_training_speedup](largest_training_speedup.md). Both arms are the same
        framework, strategy and device. 169 % is 2.69 times as much.
        """,
    ),
    Metric(
        "gain_over_rpc",
        "x",
        "higher",
        launch=partial(minibatch_gain, over="rpc"),
        clocked=True,
        doc="""
        gain_over_rpc = mini-batch time by RPC over the device / mini-batch time by zero copy, in the same launch

        Medians over steps. Mechanisms take turns in random order within a launch, so both see the same machine.
        Compute is slept for in both: where it is long beside the exchange, the gain is near 1.
        """,
    ),
    Metric(
        "gain_over_copy",
        "x",
        "higher",
        launch=partial(minibatch_gain, over="copy"),
        clocked=True,
        doc="""
        gain_over_copy = mini-batch time through registered buffers / mini-batch time by zero copy, in the same launch

        As [gain_over_rpc](gain_over_rpc.md); what is left between both is two copies per tensor.
        """,
    ),
    Metric(
        "copied_share_first",
        "fraction",
        "lower",
        launch=partial(copied_share, first=True),
        doc="""
        copied_share_first = tensors that had to be copied to where they are sent from / tensors sent, in the first
        step

        Before the first step nobody knows which operation allocates what is sent, so the share is 1. Counted, no
        timing. See [allocation.md](../allocation.md).
        """,
    ),
    Metric(
        "copied_share_later",
        "fraction",
        "lower",
        launch=partial(copied_share, first=False),
        doc="""
        copied_share_later = tensors that had to be copied to where they are sent from / tensors sent, in all steps but
        the first

        0 where every tensor is born in registered memory. An operation without a kernel that writes into given memory
        keeps it above 0: see [allocation.md](../allocation.md).
        """,
    ),
    Metric(
        "fails",
        "bool",
        "lower",
        launch=partial(fact_count, name="fails"),
        doc="""
        fails = 1 when a tensor that is larger than any published one that arrived did not arrive, 0 when it did

        The launch itself ends well in both cases; by which name it failed is in rank 0's facts (`found`). The content
        is looked at in full: a tensor that arrives otherwise than it was sent fails the launch.
        """,
    ),
    Metric(
        "refused",
        "bool",
        "higher",
        launch=partial(fact_count, name="refused"),
        doc="""
        refused = 1 when a message above a limit was refused, 0 when nothing failed

        A check of the same launch says whether it was refused by the right name: `RESOURCE_EXHAUSTED` by gRPC,
        `message_too_large` by us. One that fits goes before it.
        """,
    ),
    Metric(
        "static_edges_share",
        "fraction",
        "higher",
        launch=partial(fact_count, name="static_edges_share"),
        doc="""
        static_edges_share = weights and gradients that the graph analyser places statically / weights and gradients
        that cross between servers

        See [allocation.md](../allocation.md). Activations with a free batch dimension are dynamic and not among them.
        """,
    ),
    Metric("model_size", "MiB", None, model=model_size),
    Metric("tensor_count", "count", None, model=tensor_count),
]
