"""What only this suite needs: rates of windows of messages, how evenly senders are served, processor time per byte, and
how well the cost models predict."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, Launch, clock_offsets, timed
from scaleproof.claims.metrics import Metric, by_size
from scaleproof.core.record_schema import Record
from scaleproof.simulate.alpha_beta_fit import LEAST_SIZES, Segment, choose_cuts, fit_segments, goodness, seconds
from scaleproof.simulate.collective_rounds import rounds_of
from scaleproof.simulate.cost_fit import predict
from scaleproof.spec.case import CollectiveCase, OwnCase, TransferCase
from scaleproof.spec.common_case import NATIVE

GIGA = 1e9
LARGE = 64 << 10
"""Bytes from which the prediction of an all-reduce is judged, as the experiment on cost models proposes
(docs/costs.md)."""
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


def _receiver(record: Record) -> int:
    return RECEIVER if isinstance(record.case, OwnCase) and record.case.options.get("flows") == "incast" else 1


def _cpu(record: Record, samples: pd.DataFrame, nbytes: int, ranks: set[int]) -> float | None:
    spent, moved = timed(samples, "processor"), timed(samples, "window")
    spent, moved = spent[(spent["nbytes"] == nbytes) & spent["rank"].isin(ranks)], moved[moved["nbytes"] == nbytes]
    total = float(moved["value"].sum()) * nbytes
    return float(spent["value"].sum()) / total * GIGA if total and len(spent) else None


def one_way_rate(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Rate of a message one way, in GB/s. For the arm `copy`: rate of a memory copy.

    one_way_rate(n) = n / half of the median round trip; of the arm `copy`: n / median time in which one process alone
    copies n bytes

    The metric compares a transport with the memory that bounds it, in the same interleaved run. Both ends of the
    ping-pong use one buffer again and again, as the copy does, so a buffer that fits a cache stays there. Suite: micro.
    """
    if isinstance(record.case, TransferCase):
        rows = by_size(record, samples)
        rates = rows.loc[rows["nbytes"] == nbytes, "algbw_gbs"]
    else:
        rows = timed(samples, "copy")
        rows = rows[rows["nbytes"] == nbytes]
        rates = rows["nbytes"] / rows["value"] / GIGA
    return float(rates.iloc[0]) if len(rates) else None


def line_r_squared(record: Record, samples: pd.DataFrame) -> float | None:
    """R^2 of the logarithms of one launch's one-way times under the fitted line alpha + beta n.

    line_r_squared = 1 - sum of (ln t - ln f)^2 / sum of (ln t - mean of ln t)^2, t the one-way times of one launch over
    its message sizes, f = alpha + beta n fitted to them

    The line has the pieces that `scaleproof fit` gives it ([costs](../costs.md)). Logarithms are used because times
    span four powers of ten: otherwise the largest message alone would decide. A high value does not mean that the line
    is good at every size; see the largest relative error, which the costs list beside it. Suite: micro.
    """
    fitted = _fitted(record, samples)
    if fitted is None:
        return None
    segments, (nbytes, times) = fitted
    return goodness(nbytes, times, seconds(segments, nbytes)).r_squared


def fitted_alpha(record: Record, samples: pd.DataFrame) -> float | None:
    """Time of the smallest messages, in s, by a fit to one launch.

    fitted_alpha = alpha of the piece with the smallest messages, of alpha + beta n fitted to one launch's one-way times
    ([costs](../costs.md))

    Each launch gives one number. `scaleproof fit` takes medians over launches first and gives the interval of the fit.
    Suite: micro.
    """
    fitted = _fitted(record, samples)
    return None if fitted is None else fitted[0][0].alpha


def fitted_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Rate that the largest messages approach, in GB/s, by a fit to one launch.

    fitted_rate = 1 / beta of the piece with the largest messages, of alpha + beta n fitted to one launch's one-way
    times ([costs](../costs.md))

    Long messages approach this rate, and no message reaches it. None where the fitted cost of a byte is zero. Suite:
    micro.
    """
    fitted = _fitted(record, samples)
    return None if fitted is None or not fitted[0][-1].beta else 1 / fitted[0][-1].beta / GIGA


def _fitted(record: Record, samples: pd.DataFrame) -> tuple[tuple[Segment, ...], tuple[np.ndarray, np.ndarray]] | None:
    times = _times(record, samples)
    if not isinstance(record.case, TransferCase) or times is None:
        return None
    return fit_segments(*times, choose_cuts(*times)[0]), times


def all_reduce_prediction_error(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Largest relative error of an all-reduce predicted from the ping-pong of the same block, over sizes from 64 KiB
    on.

    all_reduce_prediction_error = largest of |p - t| / t over array sizes from 64 KiB on; t is a launch's all-reduce,
    p its prediction

    p = time of the rounds' messages by alpha and beta of the ping-pong in the same block + gamma * bytes reduced,
    with a gamma fitted to the other sizes ([costs](../costs.md)). A ping-pong moves bytes one way at a time, an
    all-reduce both ways at once. The prediction is wrong where moving bytes both ways costs more, or where a library
    overlaps better than rounds do; the metric shows by how much. Suite: micro.
    """
    case = launch.record.case
    reduced, sent = _times(launch.record, launch.samples), _times(base.record, base.samples)
    if not isinstance(case, CollectiveCase) or case.operation != "all_reduce" or reduced is None or sent is None:
        return None
    (nbytes, times), (sizes, ways) = reduced, sent
    cuts, _ = choose_cuts(sizes, ways)
    rounds = rounds_of("ring" if case.collective == NATIVE else case.collective, "all_reduce", case.ranks)
    errors = np.abs(predict(rounds, fit_segments(sizes, ways, cuts), nbytes, times) - times) / times
    return float(errors[nbytes >= LARGE].max()) if (nbytes >= LARGE).any() else None


def _times(record: Record, samples: pd.DataFrame) -> tuple[np.ndarray, np.ndarray] | None:
    rows = by_size(record, samples)
    rows = rows[rows["nbytes"] > 0].sort_values("nbytes")
    return (rows["nbytes"].to_numpy(float), rows["time_s"].to_numpy(float)) if len(rows) >= LEAST_SIZES else None


METRICS = [
    Metric("message_rate", "messages/s", "higher", size=message_rate),
    Metric("window_bandwidth", "GB/s", "higher", size=window_bandwidth),
    Metric("sender_fairness", "1", "higher", size=sender_fairness, clocked=True),
    Metric("cpu_per_byte", "ns/B", "lower", size=cpu_per_byte, clocked=True),
    Metric("sender_cpu_per_byte", "ns/B", "lower", size=sender_cpu_per_byte, clocked=True),
    Metric("receiver_cpu_per_byte", "ns/B", "lower", size=receiver_cpu_per_byte, clocked=True),
    Metric("one_way_rate", "GB/s", "higher", size=one_way_rate),
    Metric("line_r_squared", "1", "higher", launch=line_r_squared, clocked=True),
    Metric("fitted_alpha", "s", "lower", launch=fitted_alpha),
    Metric("fitted_rate", "GB/s", "higher", launch=fitted_rate),
    Metric(
        "all_reduce_prediction_error",
        "fraction",
        "lower",
        pair=all_reduce_prediction_error,
        clocked=True,
        noise_of=("collective_latency", "transfer_latency"),
        noise="added",
    ),
]
