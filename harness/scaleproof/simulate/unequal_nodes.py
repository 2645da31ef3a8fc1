"""Lasting factors on the compute time of ranks whose nodes are of several types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleproof.spec.case import AnyCase
from scaleproof.spec.relative_times import relative_times
from scaleproof.workloads.jitter_model import Variation


@dataclass(frozen=True, slots=True)
class UnequalNodes:
    """Lasting factors on the ranks' compute time, times those of a variation."""

    times: tuple[float, ...]
    variation: Variation | None

    def factors(self, ranks: int, seed: int, step: int) -> np.ndarray:
        """Factors of every rank in one step."""
        drawn = self.variation.factors(ranks, seed, step) if self.variation else 1.0
        return np.array(self.times) * drawn


def on_its_nodes(case: AnyCase, variation: Variation | None) -> Variation | None:
    """A case's variation with that of its node types."""
    times = relative_times(case)
    return UnequalNodes(times, variation) if times else variation
