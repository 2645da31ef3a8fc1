"""Factors on what a model of calls between GPUs says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """Factors on what the model of calls between GPUs says: on latencies, on the time per byte, and of its error, for
    small and for large calls."""

    latency: float = 1.0
    per_byte: float = 1.0
    small: float = 1.0
    large: float = 1.0
    large_nbytes: float = math.inf

    def error(self, nbytes: float) -> float:
        """Of a call."""
        return self.large if nbytes >= self.large_nbytes else self.small

    def times(self, alpha: float, beta: float) -> DeviceCosts:
        """The same with other latencies and times per byte."""
        return replace(self, latency=self.latency * alpha, per_byte=self.per_byte * beta)
