"""A parameter of a prediction with its uncertainty, and draws from it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

NORMAL_95 = 1.959963984540054
"""95 % of a normal distribution lie within this many standard deviations of its median."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A parameter with its 95 % interval; without an interval it counts as exact. Parameters with equal names get equal
    draws in every case. `scale`: a factor that it shares with others, around 1."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    scale: Uncertain | None = None

    def drawn(self, seed: int) -> float:
        """One draw from a normal distribution around the value, with the width of the interval on either side; never
        below 0. Positive parameters are drawn on a logarithmic scale, so that a factor up is as likely as one down."""
        return self._drawn(seed) * (self.scale.drawn(seed) if self.scale is not None else 1.0)

    def _drawn(self, seed: int) -> float:
        if self.low is None or self.high is None or self.low >= self.high:
            return self.value
        digits = hashlib.sha256(f"{seed}/{self.name}".encode()).digest()[:8]
        step = float(np.random.default_rng(int.from_bytes(digits)).standard_normal()) / NORMAL_95
        if self.low > 0 and self.value > 0:
            return self.value * math.exp(
                step * (math.log(self.value / self.low) if step < 0 else math.log(self.high / self.value))
            )
        return max(self.value + step * (self.value - self.low if step < 0 else self.high - self.value), 0.0)
