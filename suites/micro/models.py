"""What only this suite needs: rates of windows of messages, how evenly senders are served, processor time per byte, and
how well the cost models tell."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, Launch, clock_offsets, timed
from scaleproof.claims.metrics import Metric, by_size
from scaleproof.core.record_schema import Record
from scaleproof.simulate.costs import predict
from scaleproof.simulate.line import LEAST_SIZES, Segment, choose_cuts, fit_segments, goodness, seconds
from scaleproof.simulate.rounds import rounds_of
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
    """Messages per s of all flows together."""
    rows, took = common_windows(record, samples, nbytes)
    return float(rows["value"].sum()) / took if took > 0 else None


def window_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """GB/s of all flows together."""
    rate = message_rate(record, samples, nbytes)
    return None if rate is None else rate * nbytes / GIGA


def sender_fairness(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Jain's index of the senders' messages: 1 when all got as many through, 1 / senders when one got all. None with
    one sender."""
    rows, _ = common_windows(record, samples, nbytes)
    if record.case.ranks < 3 or rows.empty:
        return None
    sent = rows.groupby("rank")["value"].sum().reindex(range(1, record.case.ranks), fill_value=0.0).to_numpy(float)
    return float(sent.sum() ** 2 / (len(sent) * (sent**2).sum()))


def cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Processor time of all ranks per byte moved, ns/B."""
    return _cpu(record, samples, nbytes, set(range(record.case.ranks)))


def sender_cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """The senders' share of it; None where ranks send and receive at once."""
    return (
        _cpu(record, samples, nbytes, set(range(record.case.ranks)) - {_receiver(record)})
        if _one_sided(record)
        else None
    )


def receiver_cpu_per_byte(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """The receiver's share of it."""
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
    """GB/s of a message one way; of the arm that copies alone, of a copy."""
    if isinstance(record.case, TransferCase):
        rows = by_size(record, samples)
        found = rows.loc[rows["nbytes"] == nbytes, "algbw_gbs"]
    else:
        rows = timed(samples, "copy")
        rows = rows[rows["nbytes"] == nbytes]
        found = rows["nbytes"] / rows["value"] / GIGA
    return float(found.iloc[0]) if len(found) else None


def line_r_squared(record: Record, samples: pd.DataFrame) -> float | None:
    """R^2 of the logarithms of one launch's one-way times under alpha + beta n, cut as `scaleproof fit` cuts."""
    fitted = _fitted(record, samples)
    if fitted is None:
        return None
    segments, (nbytes, times) = fitted
    return goodness(nbytes, times, seconds(segments, nbytes)).r_squared


def fitted_alpha(record: Record, samples: pd.DataFrame) -> float | None:
    """s of the smallest messages by the fit to one launch."""
    fitted = _fitted(record, samples)
    return None if fitted is None else fitted[0][0].alpha


def fitted_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """GB/s that the largest messages approach by the fit to one launch; None where a byte costs nothing."""
    fitted = _fitted(record, samples)
    return None if fitted is None or not fitted[0][-1].beta else 1 / fitted[0][-1].beta / GIGA


def _fitted(record: Record, samples: pd.DataFrame) -> tuple[tuple[Segment, ...], tuple[np.ndarray, np.ndarray]] | None:
    found = _times(record, samples)
    if not isinstance(record.case, TransferCase) or found is None:
        return None
    return fit_segments(*found, choose_cuts(*found)[0]), found


def all_reduce_prediction_error(launch: Launch, base: Launch) -> float | None:
    """Largest relative error over sizes from 64 KiB of an all-reduce predicted from the ping-pong of the same block,
    gamma fitted to the other sizes."""
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
