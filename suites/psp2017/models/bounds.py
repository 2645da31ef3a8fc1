"""The paper's bounds P1 to P3 on the lags of a sampled barrier, as functions, and the metrics that are arithmetic on
them. A lag is the number of steps that a peer is behind a worker. `within`: F(r), the probability that a lag is at most
the staleness r, without a barrier; `sample`: beta; `steps`: T, the length of the sequence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from pydantic import Field, model_validator

from scaleproof.claims.arithmetic import Arguments, Published
from scaleproof.claims.metrics import Metric
from scaleproof.spec.errors import FieldError

MOST_STEPS = 10**6
"""Longest sequence whose distribution is written out."""
ROUNDING = 1e-12
"""A share that is no difference."""


def sample_within(within: float, sample: int) -> float:
    """a = F(r)^beta: the probability that no one of a sample lags further than the staleness."""
    return float(within**sample)


def scale(within: float, sample: int, staleness: int, steps: int) -> float:
    """P3: S = (1 - a) / (F(r) (1 - a) + a - a^(T - r + 1)), by which the distribution sums to 1; its limit at a = 1."""
    a = sample_within(within, sample)
    if a == 1:
        return 1 / (within + steps - staleness)
    return (1 - a) / (within * (1 - a) + a - a ** (steps - staleness + 1))


def lag_distribution(lags: Sequence[float], sample: int, staleness: int, steps: int) -> np.ndarray:
    """Probability of each lag from 0 to T under a sampled barrier: S f(s) up to the staleness r, S a^(s - r) above.
    `lags`: f, the probabilities of lags 0 to r without a barrier."""
    within = math.fsum(lags[: staleness + 1])
    a, factor = sample_within(within, sample), scale(within, sample, staleness, steps)
    tail = a ** np.arange(1, steps - staleness + 1, dtype=float)
    return factor * np.concatenate([np.asarray(lags[: staleness + 1], float), tail])


def mean_bound(within: float, sample: int, staleness: int, steps: int) -> float:
    """P1: the mean lag is at most S (r (r + 1) / 2 + a (r + 2) / (1 - a)^2)."""
    a, r = sample_within(within, sample), staleness
    if a == 1:
        return math.inf
    return scale(within, sample, r, steps) * (r * (r + 1) / 2 + a * (r + 2) / (1 - a) ** 2)


def square_bound(within: float, sample: int, staleness: int, steps: int) -> float:
    """P2: the mean square lag is less than S (r (r + 1) (2 r + 1) / 6 + a (r^2 + 4) / (1 - a)^3)."""
    a, r = sample_within(within, sample), staleness
    if a == 1:
        return math.inf
    return scale(within, sample, r, steps) * (r * (r + 1) * (2 * r + 1) / 6 + a * (r**2 + 4) / (1 - a) ** 3)


def beyond(within: float, sample: int, staleness: int, steps: int) -> float:
    """The probability of a lag above the staleness, by the same distribution: S (a + ... + a^(T - r))."""
    return 1 - within * scale(within, sample, staleness, steps)


class Barrier(Arguments):
    """A sampled barrier."""

    within: float = Field(gt=0, lt=1, description="F(r): probability of a lag of at most the staleness.")
    staleness: int = Field(ge=0, le=1000, description="r, steps.")
    steps: int = Field(ge=1, le=MOST_STEPS, description="T, the length of the sequence.")
    sample: int = Field(ge=1, le=10_000, description="beta, the smallest sample.")

    @model_validator(mode="after")
    def _longer_than_the_staleness(self) -> Barrier:
        if self.steps <= self.staleness:
            raise FieldError("steps", f"{self.steps} is not more than the staleness, {self.staleness}")
        return self


class Barriers(Barrier):
    """Sampled barriers with samples of several sizes."""

    largest: int = Field(ge=2, le=10_000, description="The largest sample.")

    @model_validator(mode="after")
    def _several(self) -> Barriers:
        if self.largest <= self.sample:
            raise FieldError("largest", f"{self.largest} is not more than the smallest sample, {self.sample}")
        return self

    def bounds(self, bound: Callable[[float, int, int, int], float]) -> np.ndarray:
        """A bound at each size of the sample."""
        samples = range(self.sample, self.largest + 1)
        return np.array([bound(self.within, sample, self.staleness, self.steps) for sample in samples])


def mean_lag_bound(x: Barrier, rows: Published) -> float:
    """Largest mean lag that P1 allows (suite psp2017), in steps.

    mean_lag_bound = S (r (r + 1) / 2 + a (r + 2) / (1 - a)^2), a = F(r)^beta

    Arithmetic, no launches. The claim's `x` has within, F(r), staleness, r, steps, T, and sample, beta.
    """
    return mean_bound(x.within, x.sample, x.staleness, x.steps)


def lag_distribution_off(x: Barriers, rows: Published) -> float:
    """By how much the distribution of lags under a sampled barrier misses a sum of 1 (suite psp2017), the largest over
    samples.

    lag_distribution_off = largest of | sum over lags - 1 |, with the scale S of P3

    Without a barrier lags up to the staleness are equally likely here. Arithmetic, no launches.
    """
    lags = [x.within / (x.staleness + 1)] * (x.staleness + 1)
    samples = range(x.sample, x.largest + 1)
    return max(abs(lag_distribution(lags, sample, x.staleness, x.steps).sum() - 1) for sample in samples)


def mean_lag_bound_rises(x: Barriers, rows: Published) -> float:
    """Sizes of the sample at which one more worker raises the bound P1 on the mean lag (suite psp2017).

    mean_lag_bound_rises = sizes beta with P1(beta + 1) > P1(beta)

    0 means that a larger sample never has a worse bound. Arithmetic, no launches.
    """
    bounds = x.bounds(mean_bound)
    return float(np.count_nonzero(bounds[1:] > bounds[:-1] * (1 + ROUNDING)))


def mean_lag_bound_change(x: Barriers, rows: Published) -> float:
    """By which share the bound P1 on the mean lag still changes from one size of the sample on (suite psp2017).

    mean_lag_bound_change = largest of | P1(beta) / P1(largest) - 1 |, over samples from `sample` to `largest`

    Near 0 means that the bound is flat there. Arithmetic, no launches.
    """
    bounds = x.bounds(mean_bound)
    return float(np.abs(bounds / bounds[-1] - 1).max())


METRICS = [
    Metric("mean_lag_bound", "steps", "lower", model=mean_lag_bound, x=Barrier),
    Metric("lag_distribution_off", "1", "lower", model=lag_distribution_off, x=Barriers),
    Metric("mean_lag_bound_rises", "sizes", "lower", model=mean_lag_bound_rises, x=Barriers),
    Metric("mean_lag_bound_change", "fraction", "lower", model=mean_lag_bound_change, x=Barriers),
]
