"""Fits alpha, beta, gamma and the time of a call (s per message, per byte sent, per byte reduced, per collective call)
with their intervals over launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from scaleproof.simulate.alpha_beta_fit import Goodness, Segment, checked, choose_cuts, fit_segments, goodness, seconds
from scaleproof.simulate.collective_rounds import Rounds, messages_s, rounds_of
from scaleproof.stats.bootstrap import SEED, calibrated
from scaleproof.stats.intervals import smallest_count

RESAMPLES = 999


@dataclass(frozen=True, slots=True)
class Value:
    """A parameter with its interval over launches; None below 6 launches."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Fit of point-to-point times: segments, alphas and betas with intervals, how well they fit, and the AICc by number
    of segments."""

    segments: tuple[Segment, ...]
    alphas: tuple[Value, ...]
    betas: tuple[Value, ...]
    goodness: Goodness
    aicc: dict[int, float]


@dataclass(frozen=True, slots=True)
class Reduction:
    """The time of a call, gamma, the predicted time of every size with both fitted to the other sizes, and how well
    that fits."""

    call: Value
    gamma: Value
    predicted: np.ndarray
    goodness: Goodness


def fit_transfer(label: str, nbytes: np.ndarray, times: np.ndarray) -> Line:
    """Fits alpha + beta n of one message to medians over launches. `times`: s, a row per launch, a column per size.
    Raises SpecError when no line can be fitted."""
    checked(label, nbytes, times)
    medians = np.median(times, axis=0)
    cuts, scores = choose_cuts(nbytes, medians)
    segments = fit_segments(nbytes, medians, cuts)

    def parameters(launches: np.ndarray) -> np.ndarray:
        fitted = fit_segments(nbytes, np.median(times[launches], axis=0), cuts)
        return np.array([[segment.alpha, segment.beta] for segment in fitted]).ravel()

    spans = intervals(parameters, [len(times)], 2 * len(segments))
    values = [
        Value(value, *span)
        for value, span in zip(
            (part for segment in segments for part in (segment.alpha, segment.beta)), spans, strict=True
        )
    ]
    return Line(
        segments, tuple(values[::2]), tuple(values[1::2]), goodness(nbytes, medians, seconds(segments, nbytes)), scores
    )


def fit_reduction(
    label: str,
    line: Line,
    algorithm: str,
    ranks: int,
    nbytes: np.ndarray,
    times: np.ndarray,
    sent: tuple[np.ndarray, np.ndarray],
) -> Reduction:
    """Fits what an all-reduce takes beside its messages, which cost what `line` says: the time of a call, whatever its
    size, and gamma, both >= 0. `sent`: the sizes and times that `line` was fitted to. The intervals resample both the
    launches of the all-reduce and those of the transfer."""
    checked(label, nbytes, times)
    rounds = rounds_of(algorithm, "all_reduce", ranks)
    cuts = tuple(int(np.searchsorted(sent[0], segment.upto_nbytes or 0, "right")) for segment in line.segments[:-1])
    medians = np.median(times, axis=0)
    values = _beside_messages(rounds, nbytes, medians, messages_s(line.segments, rounds, nbytes))

    def parameters(transfers: np.ndarray, launches: np.ndarray) -> np.ndarray:
        segments = fit_segments(sent[0], np.median(sent[1][transfers], axis=0), cuts)
        alone = messages_s(segments, rounds, nbytes)
        return _beside_messages(rounds, nbytes, np.median(times[launches], axis=0), alone)

    predicted = predict(rounds, line.segments, nbytes, medians)
    spans = intervals(parameters, [len(sent[1]), len(times)], 2)
    call, gamma = (Value(float(value), *span) for value, span in zip(values, spans, strict=True))
    return Reduction(call, gamma, predicted, goodness(nbytes, medians, predicted))


def predict(rounds: Rounds, segments: tuple[Segment, ...], nbytes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Time in s of an all-reduce at every size, with the time of a call and gamma fitted to the other sizes."""
    alone = messages_s(segments, rounds, nbytes)
    predicted = np.empty(len(nbytes))
    for index in range(len(nbytes)):
        others = np.arange(len(nbytes)) != index
        call, gamma = _beside_messages(rounds, nbytes[others], times[others], alone[others])
        predicted[index] = alone[index] + call + rounds.reduced * nbytes[index] * gamma
    return predicted


def _beside_messages(rounds: Rounds, nbytes: np.ndarray, times: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """s of a call and s per byte reduced with the least sum of squared relative errors, neither below 0: both are 0 if
    the messages alone take longer than the measured all-reduces."""
    from scipy.optimize import nnls  # takes 0.3 s, which a command that fits nothing should not

    reduced = rounds.reduced * nbytes
    largest = float(reduced.max()) or 1.0  # scales both columns alike, since the solver's tolerance is absolute
    (call, gamma), _ = nnls(np.column_stack([1 / times, reduced / largest / times]), 1 - alone / times)
    return np.array([call, gamma / largest])


def intervals(
    parameters: Callable[..., np.ndarray], launches: Sequence[int], count: int
) -> list[tuple[float | None, float | None]]:
    """Percentile bootstrap over launches, for each of `count` parameters. `parameters` is called with the indices of
    the drawn launches, one array per entry of `launches`. (None, None) with too few launches for an interval."""
    if min(launches) < smallest_count():
        return [(None, None)] * count
    nominal, _ = calibrated(min(launches), True)
    interval = stats.bootstrap(
        [np.arange(number) for number in launches],
        lambda *rows, axis: np.array([parameters(*row) for row in zip(*rows, strict=True)]).T,
        n_resamples=RESAMPLES,
        batch=RESAMPLES,
        confidence_level=nominal,
        method="percentile",
        vectorized=True,
        rng=SEED,
    ).confidence_interval
    return [(float(low), float(high)) for low, high in zip(interval.low, interval.high, strict=True)]
