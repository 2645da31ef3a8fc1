"""Windows of messages: their rate and bandwidth, how evenly senders are served, and processor time per byte."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, clock_offsets, timed
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

GIGA = 1e9
RECEIVER = 0
"""Receiving rank of an incast; with one direction, rank 1 receives."""


def common_windows(record: Record, samples: pd.DataFrame, nbytes: int) -> tuple[pd.DataFrame, float]:
    """The windows that ended while every flow was under way, and how long that was in s, on rank 0's clock. A flow is
    named by the rank that recorded it."""
    rows = timed(samples, "window")
    rows = rows[rows["nbytes"] == nbytes]
    if rows.empty:
        return rows, 0.0
    offsets = clock_offsets(record, rows)
    rows = rows.assign(start_ns=rows["start_ns"] + offsets, end_ns=rows["end_ns"] + offsets)
    first, last = rows.groupby("rank")["start_ns"].min().max(), rows.groupby("rank")["end_ns"].max().min()
    return rows[(rows["end_ns"] > first) & (rows["end_ns"] <= last)], float(last - first) / SECOND


def message_rate(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Messages per second of all flows together.

    message_rate(n) = messages of n bytes in windows that ended while every flow was under way / length of that time

    A sender has a window of messages under way at once. In one direction and at incast, the receiver acknowledges a
    window with one byte, and the window ends when its sender has received this byte. In both directions at once, the
    messages that both ranks received count together. Each launch gives one number, measured on one clock. The cost of a
    message includes a Python call on either side, so the rate is not that of a network alone. Suite: micro.
    """
    rows, took = common_windows(record, samples, nbytes)
    return float(rows["value"].sum()) / took if took > 0 else None


def window_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Bandwidth of all flows together, in GB/s.

    window_bandwidth(n) = n * [message_rate](message_rate.md)(n)

    The sum over all flows: one direction, both directions, or all senders of an incast. It is higher than
    [transfer_bandwidth](transfer_bandwidth.md) where messages under way fill the pauses of a ping-pong. On one machine,
    memory and cores limit it, and there is no link that could be full duplex. Suite: micro.
    """
    rate = message_rate(record, samples, nbytes)
    return None if rate is None else rate * nbytes / GIGA


def sender_fairness(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Jain's index of the number of messages of each sender. None with one sender.

    sender_fairness(n) = (sum of x)^2 / (senders * sum of x^2), x the number of messages of n bytes that each sender
    completed while all of them were sending

    Jain's index (Jain, Chiu, Hawe 1984) is 1 when all senders completed equally many messages, and 1 / senders when one
    sender completed them all. With few large messages it is coarse: one window more or less is visible. With more ranks
    than cores it depends on the kernel's scheduler as much as on the transport. Suite: micro, experiment incast.
    """
    rows, _ = common_windows(record, samples, nbytes)
    if record.case.ranks < 3 or rows.empty:
        return None
    sent = rows.groupby("rank")["value"].sum().reindex(range(1, record.case.ranks), fill_value=0.0).to_numpy(float)
    return float(sent.sum() ** 2 / (len(sent) * (sent**2).sum()))


def cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Processor time of all ranks per byte moved, in ns/B.

    cpu_per_byte(n) = processor time of all ranks in the timed windows of n bytes / bytes moved in them

    Processor time is user and system time of all threads of a rank's process (CLOCK_PROCESS_CPUTIME_ID). It includes a
    library's threads, but not work that the kernel does outside of any process. A transport that polls while it waits
    uses processor time without moving a byte. That is part of its cost and included. Suite: micro.
    """
    return _cpu(record, samples, nbytes, set(range(record.case.ranks)))


def sender_cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Processor time of the senders per byte moved, in ns/B.

    sender_cpu_per_byte(n) = processor time of the senders alone / bytes moved; see [cpu_per_byte](cpu_per_byte.md)

    None where both ranks send and receive. Suite: micro.
    """
    return (
        _cpu(record, samples, nbytes, set(range(record.case.ranks)) - {_receiver(record)})
        if _one_sided(record)
        else None
    )


def receiver_cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Processor time of the receiver per byte moved, in ns/B.

    receiver_cpu_per_byte(n) = processor time of the receiver alone / bytes moved; see [cpu_per_byte](cpu_per_byte.md)

    None where both ranks send and receive. Suite: micro.
    """
    return _cpu(record, samples, nbytes, {_receiver(record)}) if _one_sided(record) else None


def _one_sided(record: Record) -> bool:
    return isinstance(record.case, OwnCase) and record.case.options.get("flows") in ("one_way", "incast")


def in_one_direction(case: AnyCase) -> bool:
    """Whether only one rank sends, and to one other: several flows at once may use several cores and connections."""
    return isinstance(case, OwnCase) and case.options.get("flows") == "one_way"


def _receiver(record: Record) -> int:
    return RECEIVER if isinstance(record.case, OwnCase) and record.case.options.get("flows") == "incast" else 1


def _cpu(record: Record, samples: pd.DataFrame, nbytes: int, ranks: set[int]) -> float | None:
    spent, moved = timed(samples, "processor"), timed(samples, "window")
    spent, moved = spent[(spent["nbytes"] == nbytes) & spent["rank"].isin(ranks)], moved[moved["nbytes"] == nbytes]
    total = float(moved["value"].sum()) * nbytes
    return float(spent["value"].sum()) / total * GIGA if total and len(spent) else None


def made_up_windows(per_s: float, wanted: Wanted) -> MadeUp:
    """One sender, whose windows of 1 s hold so many messages."""
    return MadeUp((Event("window", 0.0, 1.0, ranks=(0,), nbytes=wanted.nbytes or 0, value=possible(per_s)),))


def made_up_bandwidth(wanted: Wanted) -> MadeUp:
    """As many messages per second as the bandwidth says."""
    return made_up_windows(wanted.known * GIGA / (wanted.nbytes or 1), wanted)


def made_up_fairness(wanted: Wanted) -> MadeUp:
    """Senders of which the first completes more messages than each other one; Jain's index solved for how many more."""
    others, fairness = wanted.case.ranks - 2, wanted.known
    root = np.roots([fairness * (others + 1) - 1, -2 * others, fairness * (others + 1) * others - others**2])
    if others < 1 or not np.isreal(root).all():
        raise ImpossibleValue(f"an index of {fairness:g}")
    sent = [float(root.real.max()), *[1.0] * others]
    rows = [(rank, value) for rank, value in enumerate(sent, start=1)]
    return MadeUp(
        tuple(Event("window", 0.0, 1.0, (rank,), nbytes=wanted.nbytes or 0, value=value) for rank, value in rows)
    )


def made_up_processor(ns_per_byte: float, wanted: Wanted, receives: bool) -> MadeUp:
    """One message, and so much processor time of the receiver or of a sender."""
    incast = wanted.case.value("options").get("flows") == "incast"
    nbytes, rank = wanted.nbytes or 0, int(incast != receives)
    spent = Event("processor", ranks=(rank,), nbytes=nbytes, value=possible(ns_per_byte) * nbytes / GIGA)
    return MadeUp((Event("window", 0.0, 1.0, ranks=(0,), nbytes=nbytes, value=1.0), spent))


METRICS = [
    Metric("message_rate", "messages/s", "higher", size=message_rate, made_up=lambda w: made_up_windows(w.known, w)),
    Metric(
        "window_bandwidth",
        "GB/s",
        "higher",
        size=window_bandwidth,
        made_up=made_up_bandwidth,
        moves_one_way=in_one_direction,
    ),
    Metric(
        "sender_fairness", "1", "higher", size=sender_fairness, clocked=True, made_up=made_up_fairness, range=(0, 1)
    ),
    *(
        Metric(
            name,
            "ns/B",
            "lower",
            size=function,
            clocked=True,
            made_up=lambda wanted, receives=receives: made_up_processor(wanted.known, wanted, receives),
        )
        for name, function, receives in (
            ("cpu_per_byte", cpu_per_byte, False),
            ("sender_cpu_per_byte", sender_cpu_per_byte, False),
            ("receiver_cpu_per_byte", receiver_cpu_per_byte, True),
        )
    ),
]
