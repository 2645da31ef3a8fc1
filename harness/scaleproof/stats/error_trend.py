"""The trend of an error over numbers of ranks: the slope per doubling, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.stats.bootstrap import RESAMPLES, SEED, calibrated
from scaleproof.stats.intervals import Interval, Method, median, smallest_count


@dataclass(frozen=True, slots=True)
class ErrorAt:
    """What an error is made of at one number of ranks: values of launches on both sides, or a single prediction."""

    ranks: int
    above: tuple[float, ...]
    below: tuple[float, ...]
    predicted: bool
    """Whether `above` is a prediction, which has no spread of launches."""

    @property
    def error(self) -> float:
        """The median above over the median below, less 1."""
        return median(self.above) / median(self.below) - 1


def trend(points: Sequence[ErrorAt]) -> tuple[float, Interval | None] | None:
    """Slope of the least-squares line through the errors over log2 of the ranks, with the interval of a percentile
    bootstrap over launches; None with one number of ranks. No interval where a side has fewer than 6 launches."""
    doublings = np.log2([point.ranks for point in points])
    centred = doublings - doublings.mean() if len(points) else doublings
    if not centred.any():
        return None
    weights = centred / (centred**2).sum()
    slope = float(weights @ [point.error for point in points])
    sides = [side for point in points for side in ([point.below] if point.predicted else [point.above, point.below])]
    fewest = min(map(len, sides))
    if fewest < smallest_count():
        return slope, None
    generator = np.random.default_rng(SEED)
    slopes = weights @ np.array([_resampled(point, generator) for point in points])
    nominal, attained = calibrated(fewest, False)
    low, high = np.quantile(slopes, [(1 - nominal) / 2, (1 + nominal) / 2])
    return slope, Interval(float(low), float(high), attained, Method.BOOTSTRAP_OF_LAUNCHES, (fewest,))


def _resampled(point: ErrorAt, generator: np.random.Generator) -> np.ndarray:
    below = _medians(point.below, generator)
    above: np.ndarray | float = median(point.above) if point.predicted else _medians(point.above, generator)
    errors: np.ndarray = above / below - 1
    return errors


def _medians(values: Sequence[float], generator: np.random.Generator) -> np.ndarray:
    numbers = np.asarray(values, float)
    medians: np.ndarray = np.median(numbers[generator.integers(len(numbers), size=(RESAMPLES, len(numbers)))], axis=1)
    return medians
