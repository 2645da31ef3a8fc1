"""What only this suite needs: rates of windows of messages, how evenly senders are served, processor time per byte, and
how well the cost models tell."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, Launch, clock_offsets, timed
from scaleproof.claims.metrics import Metric, by_size
from scaleproof.core.record_schema import Record
from scaleproof.simulate.alpha_beta_fit import LEAST_SIZES, Segment, choose_cuts, fit_segments, goodness, seconds
from scaleproof.simulate.collective_rounds import rounds_of
from scaleproof.simulate.cost_fit import predict
from scaleproof.spec.case import NATIVE, CollectiveCase, OwnCase, TransferCase

GIGA = 1e9
LARGE = 64 << 10
"""Bytes from which the prediction of an all-reduce is judged, as the experiment on cost models proposes
(docs/costs.md)."""
RECEIVER = 0
"""Of an incast, and the one that does not send in one direction is 1."""


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
    """Messages per s of all flows together.

    message_rate(n) = messages of n bytes in windows that ended while every flow was under way / length of that time

    Windows of messages are under way at once; in one direction and at incast the receiver acknowledges a window with
    one byte, and a window ends when its sender has that. Both ways at once the messages that both ranks received count
    together. One number per launch, on one clock. The cost of a message is that of a Python call on either side, not
    of a network alone. Suite: micro.
    """
    rows, took = common_windows(record, samples, nbytes)
    return float(rows["value"].sum()) / took if took > 0 else None


def window_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """GB/s of all flows together.

    window_bandwidth(n) = n * [message_rate](message_rate.md)(n)

    The sum over all flows: one direction, both directions, or all senders of an incast. Higher than
    [transfer_bandwidth](transfer_bandwidth.md) where messages under way fill the pauses of a ping-pong; on one machine
    it is bounded by its memory and cores, and there is no link that could be full duplex. Suite: micro.
    """
    rate = message_rate(record, samples, nbytes)
    return None if rate is None else rate * nbytes / GIGA


def sender_fairness(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Jain's index of the senders' messages: 1 when all got as many through, 1 / senders when one got all. None with
    one sender.

    sender_fairness(n) = (sum of x)^2 / (senders * sum of x^2), x the messages of n bytes that each sender got through
    while all of them were sending

    Jain's index (Jain, Chiu, Hawe 1984): 1 when all got as much, 1 / senders when one got everything. Of few large
    messages it is coarse: a window more or less shows. With more ranks than cores it tells of the kernel's scheduler
    as much as of the transport. Suite: micro, experiment incast.
    """
    rows, _ = common_windows(record, samples, nbytes)
    if record.case.ranks < 3 or rows.empty:
        return None
    sent = rows.groupby("rank")["value"].sum().reindex(range(1, record.case.ranks), fill_value=0.0).to_numpy(float)
    return float(sent.sum() ** 2 / (len(sent) * (sent**2).sum()))


def cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Processor time of all ranks per byte moved, ns/B.

    cpu_per_byte(n) = processor time of all ranks in the timed windows of n bytes / bytes moved in them

    Processor time is user and system time of all threads of a rank's process (CLOCK_PROCESS_CPUTIME_ID), so that a
    library's own threads count; work of the kernel outside of any process does not. A transport that spins while it
    waits spends processor time without moving a byte: that is part of its price. Suite: micro.
    """
    return _cpu(record, samples, nbytes, set(range(record.case.ranks)))


def sender_cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """The senders' share of it; None where ranks send and receive at once.

    sender_cpu_per_byte(n) = processor time of the senders alone / bytes moved; see [cpu_per_byte](cpu_per_byte.md)

    None where both ranks send and receive. Suite: micro.
    """
    return (
        _cpu(record, samples, nbytes, set(range(record.case.ranks)) - {_receiver(record)})
        if _one_sided(record)
        else None
    )


def receiver_cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """The receiver's share of it.

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
    """GB/s of a message one way; of the arm that copies alone, of a copy.

    one_way_rate(n) = n / half of the median round trip; of the arm `copy`: n / median time in which one process alone
    copies n bytes

    Puts a transport beside the memory that bounds it in the same interleaved run. Both ends of the ping-pong use one
    buffer again and again, as the copy does: what fits a cache stays there. Suite: micro.
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
    """R^2 of the logarithms of one launch's one-way times under alpha + beta n, cut as `scaleproof fit` cuts.

    line_r_squared = 1 - sum of (ln t - ln f)^2 / sum of (ln t - mean of ln t)^2, t the one-way times of one launch
    over its message sizes, f = alpha + beta n fitted to them

    Fitted as `scaleproof fit` does ([costs](../costs.md)). Logarithms, since times span four powers of ten: else the
    largest message alone would decide. A high value does not make the line good at every size: the largest relative
    error stands beside it in the costs. Suite: micro.
    """
    fitted = _fitted(record, samples)
    if fitted is None:
        return None
    segments, (nbytes, times) = fitted
    return goodness(nbytes, times, seconds(segments, nbytes)).r_squared


def fitted_alpha(record: Record, samples: pd.DataFrame) -> float | None:
    """s of the smallest messages by the fit to one launch.

    fitted_alpha = alpha of the piece with the smallest messages, of alpha + beta n fitted to one launch's one-way
    times ([costs](../costs.md))

    One number per launch. `scaleproof fit` takes medians over launches first and gives the interval of the fit. Suite:
    micro.
    """
    fitted = _fitted(record, samples)
    return None if fitted is None else fitted[0][0].alpha


def fitted_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """GB/s that the largest messages approach by the fit to one launch; None where a byte costs nothing.

    fitted_rate = 1 / beta of the piece with the largest messages, of alpha + beta n fitted to one launch's one-way
    times ([costs](../costs.md))

    The rate that long messages approach, which no message reaches. None where the fit finds that a byte costs nothing.
    Suite: micro.
    """
    fitted = _fitted(record, samples)
    return None if fitted is None or not fitted[0][-1].beta else 1 / fitted[0][-1].beta / GIGA


def _fitted(record: Record, samples: pd.DataFrame) -> tuple[tuple[Segment, ...], tuple[np.ndarray, np.ndarray]] | None:
    times = _times(record, samples)
    if not isinstance(record.case, TransferCase) or times is None:
        return None
    return fit_segments(*times, choose_cuts(*times)[0]), times


def all_reduce_prediction_error(launch: Launch, base: Launch) -> float | None:
    """Largest relative error over sizes from 64 KiB of an all-reduce predicted from the ping-pong of the same block,
    gamma fitted to the other sizes.

    all_reduce_prediction_error = largest of |p - t| / t over array sizes from 64 KiB on; t is a launch's all-reduce, p
    its prediction

    p = time of the rounds' messages by alpha and beta of the ping-pong in the same block + gamma * bytes reduced, with
    a gamma fitted to the other sizes ([costs](../costs.md)). A ping-pong moves bytes one way at a time, an all-reduce
    both ways at once: where that costs more, or a library overlaps better than rounds, the prediction is off and says
    by how much. Suite: micro.
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
    Metric("all_reduce_prediction_error", "fraction", "lower", pair=all_reduce_prediction_error, clocked=True),
]
