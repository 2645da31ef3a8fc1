"""Costs of one message and one reduced byte in a simulation, with their uncertainty."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.simulate.alpha_beta_fit import Segment

NORMAL_95 = 1.959963984540054
"""95 % of a normal distribution lie within this many standard deviations of its median."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A parameter with its 95 % interval; without an interval it counts as exact. Parameters with equal names get equal
    draws in every case."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    def drawn(self, seed: int) -> float:
        """One draw from a normal distribution around the value, with the width of the interval on either side; never
        below 0. Positive parameters are drawn on a logarithmic scale, so that a factor up is as likely as one down."""
        if self.low is None or self.high is None or self.low >= self.high:
            return self.value
        digits = hashlib.sha256(f"{seed}/{self.name}".encode()).digest()[:8]
        step = float(np.random.default_rng(int.from_bytes(digits)).standard_normal()) / NORMAL_95
        if self.low > 0 and self.value > 0:
            return self.value * math.exp(
                step * (math.log(self.value / self.low) if step < 0 else math.log(self.high / self.value))
            )
        return max(self.value + step * (self.value - self.low if step < 0 else self.high - self.value), 0.0)


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """alpha (s per message) and beta (s per byte in software, a lower bound on the time per byte) by message size;
    gamma (s per byte reduced); `goodput`: share of a link's rate that is payload."""

    segments: tuple[Segment, ...]
    gamma: float
    goodput: float = 1.0

    def alpha(self, nbytes: np.ndarray) -> np.ndarray:
        """alpha in s of messages of `nbytes`."""
        return self._of(nbytes, [segment.alpha for segment in self.segments])

    def beta(self, nbytes: np.ndarray) -> np.ndarray:
        """beta in s per byte of messages of `nbytes`."""
        return self._of(nbytes, [segment.beta for segment in self.segments])

    def _of(self, nbytes: np.ndarray, values: list[float]) -> np.ndarray:
        if len(values) == 1:
            return np.full(len(nbytes), values[0])
        cuts = [float(segment.upto_nbytes or 0) for segment in self.segments[:-1]]
        return np.array(values)[np.searchsorted(cuts, nbytes, side="left")]


FREE = MessageCosts((Segment(None, 0.0, 0.0),), 0.0)
"""Messages whose only cost is the links."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Message costs with their uncertainty. `source`: where they come from; `assumed`: assumptions that were not
    measured."""

    upto_nbytes: tuple[int | None, ...]
    alphas: tuple[Uncertain, ...]
    betas: tuple[Uncertain, ...]
    gamma: Uncertain
    goodput: float
    source: str
    assumed: tuple[str, ...] = ()

    def central(self) -> MessageCosts:
        """Every parameter at its value."""
        return self._costs(lambda parameter: parameter.value)

    def drawn(self, seed: int) -> MessageCosts:
        """Every parameter drawn from its uncertainty. Under one seed, parameters with equal names get equal draws in
        all cases."""
        return self._costs(lambda parameter: parameter.drawn(seed))

    def _costs(self, value_of) -> MessageCosts:  # type: ignore[no-untyped-def]
        parts = zip(self.upto_nbytes, self.alphas, self.betas, strict=True)
        return MessageCosts(
            tuple(Segment(upto, value_of(alpha), value_of(beta)) for upto, alpha, beta in parts),
            value_of(self.gamma),
            self.goodput,
        )

    @property
    def parameters(self) -> tuple[Uncertain, ...]:
        """All parameters."""
        return (*self.alphas, *self.betas, self.gamma)

    def also_assumed(self, *more: str) -> CostModel:
        """A copy with further assumptions."""
        return replace(self, assumed=(*self.assumed, *more))
