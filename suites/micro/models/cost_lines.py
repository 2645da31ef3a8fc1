"""One-way times by size: beside a copy of memory, and how well the cost models describe them."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch, timed
from scaleproof.claims.made_up import Event, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric, by_size
from scaleproof.core.record_schema import Record
from scaleproof.simulate.alpha_beta_fit import LEAST_SIZES, Segment, choose_cuts, fit_segments, goodness, seconds
from scaleproof.simulate.collective_rounds import rounds_of
from scaleproof.simulate.reduction_fit import predict
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.spec.common_case import NATIVE

GIGA = 1e9
LARGE = 64 << 10
"""Bytes from which the prediction of an all-reduce is judged, as the experiment on cost models proposes
(docs/costs.md)."""


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
    with the time of a call and gammas fitted to the other sizes ([costs](../costs.md)). A ping-pong moves bytes one way
    at a time, an all-reduce both ways at once. The prediction is wrong where moving bytes both ways costs more, or
    where a library overlaps better than rounds do; the metric shows by how much. Suite: micro.
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


def made_up_way(wanted: Wanted) -> MadeUp:
    """A message, or a copy, at this rate."""
    nbytes = wanted.nbytes or 0
    seconds = nbytes / (possible(wanted.known, 1e-30) * GIGA)
    if isinstance(wanted.case, TransferCase):
        return MadeUp((Event("transfer", 0.0, 2 * seconds, nbytes=nbytes),))
    return MadeUp((Event("copy", ranks=(0,), nbytes=nbytes, value=seconds),))


def made_up_line(wanted: Wanted, alpha: float, rate: float, scatter: float = 0.0) -> MadeUp:
    """Messages on a line of alpha (s) and a rate (GB/s); every other size takes longer by the factor e^scatter."""
    rows = [
        Event("transfer", 0.0, 2 * (alpha + nbytes / (rate * GIGA)) * np.exp(scatter * (place % 2)), nbytes=nbytes)
        for place, nbytes in enumerate(wanted.case.value("sizes"))
    ]
    return MadeUp(tuple(rows))


@cache
def _scatter_of(sizes: tuple[int, ...], r_squared: float) -> float:
    """The scatter at which a line over these sizes has this R^2, by bisection."""
    nbytes = np.array(sizes, float)
    line, every_other = 1e-4 + nbytes / GIGA, np.arange(len(sizes)) % 2
    low, high = 0.0, 20.0
    for _ in range(16):
        middle = (low + high) / 2
        times = line * np.exp(middle * every_other)
        fitted = seconds(fit_segments(nbytes, times, choose_cuts(nbytes, times)[0]), nbytes)
        low, high = (middle, high) if goodness(nbytes, times, fitted).r_squared > r_squared else (low, middle)
    return low


def made_up_fit(wanted: Wanted) -> MadeUp:
    """Messages that scatter around a line so that it has this R^2, to a hundredth."""
    r_squared = round(possible(wanted.known, -100, 1), 2)
    return made_up_line(wanted, 1e-4, 1.0, _scatter_of(tuple(wanted.case.value("sizes")), r_squared))


def made_up_prediction(wanted: Wanted) -> MadeUp:
    """A ping-pong on a line, and an all-reduce that costs its rounds, but at one size less by this error."""
    ping_pong = made_up_line(wanted, 1e-4, 1.0)
    if wanted.value is None:
        return ping_pong
    case = wanted.case
    nbytes = np.array([size for size in case.value("sizes") if size], float)
    rounds = rounds_of("ring" if case.collective == NATIVE else case.collective, "all_reduce", case.ranks)
    cut = fit_segments(nbytes, 1e-4 + nbytes / GIGA, ())
    times = predict(rounds, cut, nbytes, np.full(len(nbytes), 1e-12))
    missed = np.where(nbytes == nbytes[nbytes >= LARGE].min(), 1 + possible(wanted.value), 1.0)
    pairs = zip(nbytes.astype(int).tolist(), (times / missed).tolist(), strict=True)
    return MadeUp(tuple(Event("all_reduce", 0.0, seconds, nbytes=size) for size, seconds in pairs))


METRICS = [
    Metric(
        "one_way_rate",
        "GB/s",
        "higher",
        size=one_way_rate,
        made_up=made_up_way,
        moves_one_way=lambda case: True,
    ),
    Metric(
        "line_r_squared",
        "1",
        "higher",
        launch=line_r_squared,
        clocked=True,
        made_up=made_up_fit,
        range=(-math.inf, 1),
    ),
    Metric("fitted_alpha", "s", "lower", launch=fitted_alpha, made_up=lambda w: made_up_line(w, w.known, 1.0)),
    Metric("fitted_rate", "GB/s", "higher", launch=fitted_rate, made_up=lambda w: made_up_line(w, 1e-4, w.known)),
    Metric(
        "all_reduce_prediction_error",
        "fraction",
        "lower",
        pair=all_reduce_prediction_error,
        clocked=True,
        made_up=made_up_prediction,
        noise_of=("collective_latency", "transfer_latency"),
        noise="added",
        range=(0, math.inf),
    ),
]
