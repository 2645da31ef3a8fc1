"""Had the machine settled? A processor that is still cool, or files that are not yet in memory, make the first block of an experiment another machine's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.claims.launch import Launch, wall_s

ALPHA = 0.05
FEWEST = 3
"""Launches of a case below which its first one is compared with nothing."""


@dataclass(frozen=True, slots=True)
class Settling:
    """The first block against the others of its experiment."""

    cases: int
    slower: int
    """Cases whose first timed region took longer than the median of their others."""
    share: float
    """By how much longer it took, over cases in the median; negative: it was faster."""
    p: float

    @property
    def settled(self) -> bool:
        """Whether the first block may be one like the others."""
        return self.p > ALPHA


def timed_regions(launches: Iterable[Launch]) -> dict[str, dict[int, float]]:
    """Common wall time of the timed region in s, by case and block; launches without both marks are left out."""
    found: dict[str, dict[int, float]] = {}
    for launch in launches:
        seconds = wall_s(launch.record, launch.samples)
        if seconds:
            found.setdefault(launch.record.case_id, {})[launch.record.plan_index] = seconds
    return found


def settling(regions: Mapping[str, Mapping[int, float]]) -> Settling | None:
    """Sign test over cases, two-sided: each case says whether its launch in block 0 took longer than the median of its later ones. Six cases are the
    fewest that can reach 5 %; None when no case has enough launches."""
    from scipy.stats import binomtest

    enough = [blocks for blocks in regions.values() if 0 in blocks and len(blocks) >= FEWEST]
    ratios = [blocks[0] / float(np.median([seconds for block, seconds in blocks.items() if block])) for blocks in enough]
    unequal = [ratio for ratio in ratios if ratio != 1]
    if not unequal:
        return None
    slower = sum(ratio > 1 for ratio in unequal)
    return Settling(len(unequal), slower, float(np.median(unequal)) - 1, float(binomtest(slower, len(unequal)).pvalue))
