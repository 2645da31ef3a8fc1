"""The paper's micro-benchmark: time, rate, costs and speed-up of one tensor's transfer."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import Launch, median_duration_s, timed
from scaleproof.claims.made_up import Event, MadeUp, MakeUp, Wanted, lasting, possible, with_facts
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record


def send_reduce_s(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Time to send a tensor, find its largest element, and report it, in s.

    send_reduce_s(n) = median time of one tensor of n bytes: rank 0 sends it, rank 1 finds its largest element and
    reports the value

    One rank measures the time. For our own transports this is the sender, from the start of the send until the answer
    has arrived. The answer is a tensor of one element, sent by the same mechanism. For TensorFlow's runtime it is the
    receiver, whose session requests the tensor: from the start of the step until the number has arrived. Both times
    contain one small message, the tensor, and the reduction, one after the other. The reduction is included, as in the
    paper. Event `reduce_max` has its time alone where rank 1 runs our code. Connecting, registering memory and the
    first tensor of a size are not included. Each launch gives one number per size. Suite: xue2019.
    """
    rows = timed(samples, "send_reduce")
    return median_duration_s(rows[rows["nbytes"] == nbytes])


def send_reduce_gbs(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Bytes of a tensor over the time to send and reduce it, in GB/s.

    send_reduce_gbs(n) = n / [send_reduce_s](send_reduce_s.md)(n)

    The time includes the reduction and the answer, so the value is below the rate at which the transport moves bytes.
    The bound beside it on pages is that of moving the bytes once, without the reduction.
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
    known = all(cost.get(counter) is not None for cost in costs)  # records of an earlier version have no packets
    return sum(cost[counter] for cost in costs) / tensors if tensors and known else None


def packets_per_tensor(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Packets that the interfaces of both ends sent, per tensor.

    packets_per_tensor(n) = packets that both ends' interfaces sent while the tensors of n bytes were sent / tensors

    The kernel of each node counts them, in /proc/net/dev, with acknowledgements and the program's answer, which is a
    tensor of one element by the same mechanism. The value exists where each rank has a node, and so an interface, of
    its own. [messages_per_tensor](messages_per_tensor.md) is what our own code counts.
    """
    if len({part.namespace for part in record.network}) != record.case.ranks:
        return None
    return per_tensor(record, samples, nbytes, "packets")


def extreme_speedup(launch: Launch, base: Launch, _floor: float | None = None, *, extreme: Any) -> float | None:
    """The smallest or largest ratio, over message sizes, of the base's time to the launch's."""
    ratios = []
    for nbytes in getattr(launch.record.case, "sizes", ()):
        launch_s = send_reduce_s(launch.record, launch.samples, nbytes)
        base_s = send_reduce_s(base.record, base.samples, nbytes)
        if launch_s and base_s:
            ratios.append(base_s / launch_s)
    return extreme(ratios) if ratios else None


def made_up_rate(gbs: float, wanted: Wanted) -> float:
    """The time in s of a tensor that moves at this rate."""
    return (wanted.nbytes or 0) / (possible(gbs, 1e-30) * 1e9)


def made_up_costs(counter: str) -> MakeUp:
    """Launches whose ends count together so much per tensor."""
    return with_facts(lambda value, wanted: {"costs": {str(wanted.nbytes): {"tensors": 1.0, counter: possible(value)}}})


def made_up_speedup(wanted: Wanted) -> MadeUp:
    """A tensor that takes 0.1 s at every size, less by this factor where it is not the base."""
    took = 0.1 / possible(1.0 if wanted.value is None else wanted.value, 1e-9)
    return MadeUp(tuple(Event("send_reduce", 0.0, took, nbytes=nbytes) for nbytes in wanted.case.value("sizes")))


METRICS = [
    Metric("send_reduce_s", "s", "lower", size=send_reduce_s, made_up=lasting("send_reduce")),
    Metric(
        "send_reduce_gbs",
        "GB/s",
        "higher",
        size=send_reduce_gbs,
        made_up=lasting("send_reduce", made_up_rate),
        moves_one_way=lambda case: True,
    ),
    Metric(
        "copies_per_tensor",
        "1",
        "lower",
        size=partial(per_tensor, counter="copies"),
        own_count=True,
        made_up=made_up_costs("copies"),
        doc="""
        copies_per_tensor(n) = copies of a payload that the mechanism made in the memory of either end / tensors sent

        Our code counts each copy where it makes it (harness/scaleproof/remote), over the timed tensors of n bytes. A
        transport's own messages have no value, because gRPC, a socket or the kernel copies below the level at which we
        count. A socket copies at least once at each end, and gRPC also serialises. Writing into another rank's memory
        is the transfer itself and does not count as a copy.
        """,
    ),
    Metric(
        "messages_per_tensor",
        "1",
        "lower",
        size=partial(per_tensor, counter="messages"),
        own_count=True,
        made_up=made_up_costs("messages"),
        doc="""
        messages_per_tensor(n) = messages before the receiver has the tensor / tensors sent, both ends together

        Sends, one-sided writes and reads, and requests count. Messages that tell the sender afterwards that memory is
        free again are counted separately and not included, since no rank that holds a tensor waits for them. A control
        message that is acknowledged one tensor later makes a launch's mean a little more than a whole number.
        """,
    ),
    Metric("packets_per_tensor", "1", "lower", size=packets_per_tensor),
    Metric(
        "round_trips_per_tensor",
        "1",
        "lower",
        size=partial(per_tensor, counter="round_trips"),
        own_count=True,
        made_up=made_up_costs("round_trips"),
        doc="""
        round_trips_per_tensor(n) = times that an end sent a request and needed the answer before the receiver had the
        tensor / tensors sent

        One-sided reads and requests count. The program's answer (the largest element) is a separate tensor and is
        counted with that tensor.
        """,
    ),
    Metric(
        "processor_s_per_tensor",
        "s",
        "lower",
        size=partial(per_tensor, counter="processor_s"),
        made_up=made_up_costs("processor_s"),
        doc="""
        processor_s_per_tensor(n) = processor time of both ranks during the timed tensors of n bytes / tensors sent

        User and system time of all threads. A rank that polls a flag uses a core while it waits, so the value does not
        measure useful work. It is the processor cost of the time in [send_reduce_s](send_reduce_s.md).
        """,
    ),
    Metric(
        "least_speedup",
        "x",
        "higher",
        pair=partial(extreme_speedup, extreme=min),
        made_up=made_up_speedup,
        clocked=True,
        noise_of=("send_reduce_s",),
        doc="""
        least_speedup = smallest ratio over message sizes of the base's [send_reduce_s](send_reduce_s.md) to the
        launch's

        Launches are paired by repetition. Each pair gives one number, at the size where the gain is smallest. Noise
        makes a minimum over sizes too small and a maximum too large, and the bias grows with the number of sizes, so
        that the noise floor of single launches applies.
        """,
    ),
    Metric(
        "largest_speedup",
        "x",
        "higher",
        pair=partial(extreme_speedup, extreme=max),
        made_up=made_up_speedup,
        clocked=True,
        noise_of=("send_reduce_s",),
        doc="""
        largest_speedup = largest ratio over message sizes of the base's [send_reduce_s](send_reduce_s.md) to the
        launch's

        Like [least_speedup](least_speedup.md), but at the size where the gain is largest.
        """,
    ),
]
