"""Statistics of the checks with NumPy only, since ranks that train do not import SciPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FALSE_ALARM = 1e-6
"""Probability that one test warns of a sound, generated data set. It is small because there are many launches."""
SMALLEST_TAIL = 50
CANDIDATES = 15
MOST_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def ks_distance(values: np.ndarray, cdf: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance of a sorted sample from the distribution with these values of its CDF at the
    sample."""
    n = len(values)
    above = np.arange(1, n + 1) / n
    return float(max((above - cdf).max(), (cdf - above + 1 / n).max()))


def ks_limit(n: int) -> float:
    """KS distance that a sample of n exceeds by chance with probability FALSE_ALARM (asymptotic; conservative for
    discrete values)."""
    return math.sqrt(-math.log(FALSE_ALARM / 2) / (2 * n))


def normal_cdf(values: np.ndarray) -> np.ndarray:
    """CDF of the standard normal distribution."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in values.tolist()])


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation, with mean ranks for ties; 0 if one side is constant."""
    first_ranks, second_ranks = _ranks(first), _ranks(second)
    spread = first_ranks.std() * second_ranks.std()
    return (
        float(((first_ranks - first_ranks.mean()) * (second_ranks - second_ranks.mean())).mean() / spread)
        if spread
        else 0.0
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[index]


@dataclass(frozen=True, slots=True)
class Tail:
    """A discrete power law p(k) ~ k^-exponent for k >= `smallest`, fitted to `count` values with KS distance
    `distance`."""

    exponent: float
    smallest: int
    count: int
    distance: float


def fit_tail(degrees: np.ndarray) -> Tail | None:
    """Fit of Clauset, Shalizi and Newman 2009, section 3: the cut-off with the smallest KS distance, and the exponent
    by eq. 3.7. None if there is no tail."""
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    return _fit(values, counts)


def _fit(values: np.ndarray, counts: np.ndarray) -> Tail | None:
    above = np.cumsum(counts[::-1])[::-1]
    possible = values[(values >= 6) & (above >= SMALLEST_TAIL)]  # eq. 3.7 is accurate to 1 % for values >= 6
    if len(possible) == 0:
        return None
    chosen = np.unique(np.geomspace(1, len(possible), CANDIDATES).astype(int)) - 1
    fits = [_fit_from(values, counts, int(possible[index])) for index in chosen]
    return min(fits, key=lambda fit: fit.distance)


def _fit_from(values: np.ndarray, counts: np.ndarray, smallest: int) -> Tail:
    first = int(np.searchsorted(values, smallest))
    values, counts = values[first:], counts[first:]
    count, scale = int(counts.sum()), smallest - 0.5
    exponent = 1 + count / max(float(counts @ np.log(values / scale)), 1e-12)
    observed = np.cumsum(counts) / count
    expected = 1 - ((values + 0.5) / scale) ** (1 - exponent)
    return Tail(exponent, smallest, count, float(np.abs(observed - expected).max()))


def goodness_of_fit(degrees: np.ndarray, fit: Tail, seed: int, repeats: int) -> float:
    """Share of samples of the fitted law that are farther from their own fit than the data. The cut-off is fitted again
    for each sample (ibid., section 4)."""
    generator = np.random.default_rng(seed)
    degrees = degrees[degrees > 0]
    below = degrees[degrees < fit.smallest]
    farther = 0
    for _ in range(repeats):
        tail = generator.binomial(len(degrees), fit.count / len(degrees))
        law = np.floor((fit.smallest - 0.5) * (1 - generator.random(tail)) ** (1 / (1 - fit.exponent)) + 0.5)
        rest = generator.choice(below, len(degrees) - tail) if len(below) else below
        again = _fit(*np.unique(np.concatenate([rest, law]), return_counts=True))
        farther += again is not None and again.distance >= fit.distance
    return (1 + farther) / (1 + repeats)


def against_exponential(degrees: np.ndarray, fit: Tail) -> float:
    """Vuong's statistic of the power law against an exponential tail from the same cut-off: normal under a tie,
    positive for the power law (section 5)."""
    tail = degrees[degrees >= fit.smallest].astype(float)
    scale = fit.smallest - 0.5
    rate = 1 / max(float((tail - scale).mean()), 1e-12)
    power = np.log(((tail - 0.5) / scale) ** (1 - fit.exponent) - ((tail + 0.5) / scale) ** (1 - fit.exponent))
    exponential = np.log(-np.expm1(-rate)) - rate * (tail - 0.5 - scale)
    ratio = power - exponential
    return float(ratio.sum() / (math.sqrt(len(tail)) * max(float(ratio.std()), 1e-12)))


def last_level_cache() -> int | None:
    """Bytes of the largest cache of core 0; None if the kernel does not report it."""
    sizes = [path.read_text().strip() for path in MOST_CACHES.glob("index*/size")]
    bytes_of = {"K": 2**10, "M": 2**20}
    return max((int(size[:-1]) * bytes_of[size[-1]] for size in sizes if size and size[-1] in bytes_of), default=None)
