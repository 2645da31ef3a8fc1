"""What one message and one reduced byte cost in a simulation, and how sure that is."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.simulate.alpha_beta_fit import Segment

NORMAL_95 = 1.959963984540054
"""Standard deviations of a normal distribution on either side of its median that hold 95 %."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A parameter with its 95 % interval; without one it is taken as exact. `name` tells whose it is: equal names are
    drawn alike in every case."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    def drawn(self, seed: int) -> float:
        """One draw: normal around the value on either side, as wide as that side of the interval; never below 0. Of
        positive parameters on logarithms, so that a factor up is as likely as one down."""
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
    """alpha (s a message) and beta (s a byte that the software takes, a floor under what the links take), by message
    size; gamma (s a byte reduced); `goodput`: share of a link's rate that is payload."""

    segments: tuple[Segment, ...]
    gamma: float
    goodput: float = 1.0

    def alpha(self, nbytes: np.ndarray) -> np.ndarray:
        """s, of messages of `nbytes`."""
        return self._of(nbytes, [segment.alpha for segment in self.segments])

    def beta(self, nbytes: np.ndarray) -> np.ndarray:
        """s per byte, of messages of `nbytes`."""
        return self._of(nbytes, [segment.beta for segment in self.segments])

    def _of(self, nbytes: np.ndarray, values: list[float]) -> np.ndarray:
        if len(values) == 1:
            return np.full(len(nbytes), values[0])
        cuts = [float(segment.upto_nbytes or 0) for segment in self.segments[:-1]]
        return np.array(values)[np.searchsorted(cuts, nbytes, side="left")]


FREE = MessageCosts((Segment(None, 0.0, 0.0),), 0.0)
"""Messages that cost nothing but their links."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Message costs with their uncertainty. `source`: where they come from; `assumed`: what nobody measured."""

    upto_nbytes: tuple[int | None, ...]
    alphas: tuple[Uncertain, ...]
    betas: tuple[Uncertain, ...]
    gamma: Uncertain
    goodput: float
    source: str
    assumed: tuple[str, ...] = ()

    def central(self) -> MessageCosts:
        """Every parameter at its value."""
        return self._costs(lambda one: one.value)

    def drawn(self, seed: int) -> MessageCosts:
        """Every parameter drawn from its uncertainty; parameters of one name are drawn alike under one seed, in
        whatever case."""
        return self._costs(lambda one: one.drawn(seed))

    def _costs(self, value_of) -> MessageCosts:  # type: ignore[no-untyped-def]
        parts = zip(self.upto_nbytes, self.alphas, self.betas, strict=True)
        return MessageCosts(
            tuple(Segment(upto, value_of(alpha), value_of(beta)) for upto, alpha, beta in parts),
            value_of(self.gamma),
            self.goodput,
        )

    @property
    def parameters(self) -> tuple[Uncertain, ...]:
        """All of them."""
        return (*self.alphas, *self.betas, self.gamma)

    def also_assumed(self, *more: str) -> CostModel:
        """With further assumptions."""
        return replace(self, assumed=(*self.assumed, *more))
