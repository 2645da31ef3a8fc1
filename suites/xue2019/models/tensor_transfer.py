"""The paper's micro-benchmark: time, rate, costs and speed-up of one tensor's transfer."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

from .durations import median_s


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
    return median_s(samples, "send_reduce", nbytes)


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
]
