"""Fits alpha and beta (s per message, per byte sent) with their intervals over launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from scaleproof.simulate.alpha_beta_fit import Goodness, Segment, checked, choose_cuts, fit_segments, goodness, seconds
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
