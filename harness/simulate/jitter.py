"""How much longer than usual a rank computes: spread from step to step, and ranks that are slow for good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Jitter:
    """Lognormal factors on a rank's compute time, each with median 1. `step_sigma`: standard deviation of the logarithm from step to step within a rank;
    `rank_sigma`: between ranks, for the whole launch; `straggler_share` of steps take `straggler_factor` times as long."""

    step_sigma: float = 0.0
    rank_sigma: float = 0.0
    straggler_share: float = 0.0
    straggler_factor: float = 1.0

    def factors(self, ranks: int, seed: int, step: int) -> np.ndarray:
        """Of every rank in one step; the same for the same seed."""
        lasting = np.random.default_rng((seed, 0)).standard_normal(ranks) * self.rank_sigma
        dice = np.random.default_rng((seed, 1, step))
        found = np.exp(lasting + dice.standard_normal(ranks) * self.step_sigma)
        held_up = dice.random(ranks) < self.straggler_share
        return np.where(held_up, found * self.straggler_factor, found)
