"""Had the machine settled? A processor that is still cool, or files that are not yet in memory, make the first block of
an experiment another machine's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from scaleproof.claims.finished_launch import Launch, wall_s

ALPHA = 0.05
FEWEST = 6
"""Blocks and cases below which the first block is compared with nothing."""
BEYOND = 2.0
"""So many times as far from the usual as any later block: a machine that drifts has blocks that are apart, too."""


@dataclass(frozen=True, slots=True)
class Settling:
    """The first block against the later ones of its experiment. A block's shift: by how much the timed regions of its
    launches were longer than the median of the same case's later ones, over cases in the median; negative: shorter."""

    cases: int
    shift: float
    strays: float
    """The largest shift of a later block, without its sign."""
    p: float
    """Two-sided sign test over cases: is the first block longer (or shorter) than usual as often as not?"""

    @property
    def settled(self) -> bool:
        """Whether the first block may be one like the others."""
        return self.p > ALPHA or abs(self.shift) <= BEYOND * self.strays


def timed_regions(launches: Iterable[Launch]) -> dict[str, dict[int, float]]:
    """Common wall time of the timed region in s, by case and block; launches without both marks are left out."""
    found: dict[str, dict[int, float]] = {}
    for launch in launches:
        seconds = wall_s(launch.record, launch.samples)
        if seconds and launch.record.evidence != "simulated":
            found.setdefault(launch.record.case_id, {})[launch.record.plan_index] = seconds
    return found


def settling(regions: Mapping[str, Mapping[int, float]]) -> Settling | None:
    """From timed regions in s by case and block; cases that lack a block that the others have are left out. None with
    too few cases or blocks.

    All launches of a block share one moment of the machine, so the sign test alone would accuse every machine that
    drifts. Simulated with 6 blocks of 12 cases and 3 % noise, a first block like the others is accused in 2 % of
    experiments without drift and in 8 % with blocks that are 3 % apart."""
    from scipy.stats import binomtest

    blocks = max((set(found) for found in regions.values()), key=len, default=set())
    whole = [found for found in regions.values() if set(found) == blocks]
    if 0 not in blocks or len(blocks) < FEWEST or len(whole) < FEWEST:
        return None
    times = np.log([[found[block] for block in sorted(blocks)] for found in whole])
    apart = times - np.median(times[:, 1:], axis=1, keepdims=True)
    shifts = np.expm1(np.median(apart, axis=0))
    unequal = apart[:, 0][apart[:, 0] != 0]
    p = float(binomtest(int((unequal > 0).sum()), len(unequal)).pvalue) if len(unequal) else 1.0
    return Settling(len(whole), float(shifts[0]), float(np.abs(shifts[1:]).max()), p)
