"""Fits alpha + beta n to times over message sizes: non-negative least squares of relative errors, in segments where
the protocol changes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from scaleproof.spec.errors import SpecError

LEAST_SIZES = 3
"""Message sizes that a line needs: two points always lie on a line, so they cannot show how well it fits."""
MOST_SEGMENTS = 3
"""Eager protocol, rendezvous protocol, and messages larger than the caches."""
BETTER_BY = 10.0
"""A segment is added when it lowers AICc by more than this: then the data give the simpler model essentially no
support (Burnham and Anderson 2004, table 1)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Messages of at most `upto_nbytes` (None: any) take alpha + beta n seconds."""

    upto_nbytes: int | None
    alpha: float
    beta: float


@dataclass(frozen=True, slots=True)
class Goodness:
    """How well a model fits the medians: R^2 of the logarithms of times, relative errors |model - measured| /
    measured."""

    r_squared: float
    median_error: float
    worst_error: float
    worst_nbytes: int


def seconds(segments: tuple[Segment, ...], nbytes: np.ndarray) -> np.ndarray:
    """Time in s of messages of `nbytes` bytes."""
    times = np.full(len(nbytes), segments[-1].alpha) + segments[-1].beta * nbytes
    for segment in reversed(segments[:-1]):
        times = np.where(nbytes <= (segment.upto_nbytes or 0), segment.alpha + segment.beta * nbytes, times)
    return times


def fit_line(nbytes: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """alpha in s and beta in s per byte, both >= 0, with the least sum of squared relative errors."""
    from scipy.optimize import nnls  # takes 0.3 s, which a command that fits nothing should not

    largest = float(nbytes.max()) or 1.0  # scales both columns alike, since the solver's tolerance is absolute
    rows = np.column_stack([1 / times, nbytes / largest / times])
    (alpha, beta), _ = nnls(rows, np.ones(len(times)))
    return float(alpha), float(beta / largest)


def fit_segments(nbytes: np.ndarray, times: np.ndarray, cuts: tuple[int, ...]) -> tuple[Segment, ...]:
    """One line per segment. A cut is the number of sizes before it."""
    edges = [0, *cuts, len(nbytes)]
    segments = []
    for start, stop in itertools.pairwise(edges):
        alpha, beta = fit_line(nbytes[start:stop], times[start:stop])
        segments.append(Segment(None if stop == len(nbytes) else int(nbytes[stop - 1]), alpha, beta))
    return tuple(segments)


def choose_cuts(nbytes: np.ndarray, times: np.ndarray) -> tuple[tuple[int, ...], dict[int, float]]:
    """The cuts that AICc selects, and the least AICc by number of segments. Every segment has at least LEAST_SIZES
    sizes."""
    best: dict[int, tuple[float, tuple[int, ...]]] = {}
    for pieces in range(1, MOST_SEGMENTS + 1):
        for cuts in itertools.combinations(range(LEAST_SIZES, len(nbytes) - LEAST_SIZES + 1), pieces - 1):
            if any(after - before < LEAST_SIZES for before, after in itertools.pairwise(cuts)):
                continue
            score = aicc(nbytes, times, cuts)
            if math.isfinite(score) and (pieces not in best or score < best[pieces][0]):
                best[pieces] = score, cuts
    chosen = 1
    for pieces in sorted(best):
        if pieces > 1 and best[pieces][0] < best[chosen][0] - BETTER_BY:
            chosen = pieces
    return best[chosen][1] if best else (), {pieces: score for pieces, (score, _) in best.items()}


def aicc(nbytes: np.ndarray, times: np.ndarray, cuts: tuple[int, ...]) -> float:
    """Corrected Akaike criterion of relative errors; parameters are two a segment, one a cut and the variance. Infinite
    with too few sizes."""
    count, parameters = len(nbytes), 2 * (len(cuts) + 1) + len(cuts) + 1
    if count - parameters - 1 <= 0:
        return math.inf if cuts else 0.0
    errors = seconds(fit_segments(nbytes, times, cuts), nbytes) / times - 1
    # Without this floor an exact line would be cut because of rounding errors of the clock and the median.
    mean_square = max(float(np.mean(errors**2)), 1e-8)
    return count * math.log(mean_square) + 2 * parameters + 2 * parameters * (parameters + 1) / (count - parameters - 1)


def goodness(nbytes: np.ndarray, times: np.ndarray, modelled: np.ndarray) -> Goodness:
    """Compares a model's times with measured ones."""
    log_measured, log_modelled = np.log(times), np.log(np.maximum(modelled, 1e-12))
    spread = float(np.sum((log_measured - log_measured.mean()) ** 2))
    errors = np.abs(modelled - times) / times
    worst = int(np.argmax(errors))
    share = 1 - float(np.sum((log_measured - log_modelled) ** 2)) / spread if spread else 0.0
    return Goodness(share, float(np.median(errors)), float(errors[worst]), int(nbytes[worst]))


def checked(label: str, nbytes: np.ndarray, times: np.ndarray) -> None:
    """Raises SpecError for data that no line can be fitted to. `times` has a row per launch and a column per size."""
    if times.ndim != 2 or times.shape[1] != len(nbytes) or not len(times):
        raise SpecError(f"{label}: no launch has times at all {len(nbytes)} message sizes")
    if len(nbytes) < LEAST_SIZES:
        raise SpecError(f"{label}: {len(nbytes)} message sizes; a line of time over size needs at least {LEAST_SIZES}")
    if (np.diff(nbytes) <= 0).any() or (nbytes < 0).any():
        raise SpecError(f"{label}: message sizes must increase")
    if not (np.isfinite(times) & (times > 0)).all():
        raise SpecError(f"{label}: a time is missing, zero or negative")
