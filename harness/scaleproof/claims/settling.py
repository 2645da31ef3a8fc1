"""Whether the machine had settled before an experiment. While the processor is still cool, or files are not yet in
memory, the first block of launches differs from the later ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from scaleproof.claims.finished_launch import Launch, wall_s

ALPHA = 0.05
FEWEST = 6
"""The first block is compared only with so many blocks and cases."""
BEYOND = 2.0
"""How many times the largest shift of a later block the shift of the first block must be: on a machine that drifts,
later blocks are shifted too."""


@dataclass(frozen=True, slots=True)
class Settling:
    """The first block of an experiment against the later ones. The shift of a block: by what share the timed regions of
    its launches were longer than the median of the same case in later blocks, the median over cases; negative:
    shorter."""

    cases: int
    shift: float
    strays: float
    """The largest absolute shift of a later block."""
    p: float
    """p-value of the two-sided sign test over cases; its null hypothesis: the first block is longer as often as
    shorter."""

    @property
    def settled(self) -> bool:
        """Whether the first block may be like the others."""
        return self.p > ALPHA or abs(self.shift) <= BEYOND * self.strays


def timed_regions(launches: Iterable[Launch], first: int = 0) -> dict[str, dict[int, float]]:
    """Common wall time of the timed region in s, by case and block of a campaign whose first repetition is `first`;
    launches without both marks are left out."""
    regions: dict[str, dict[int, float]] = {}
    for launch in launches:
        seconds = wall_s(launch.record, launch.samples)
        if seconds and launch.record.evidence != "simulated":
            regions.setdefault(launch.record.case_id, {})[launch.record.plan_index - first] = seconds
    return regions


def settling(regions: Mapping[str, Mapping[int, float]]) -> Settling | None:
    """From timed regions in s by case and block; cases that lack a block that the others have are left out. None with
    too few cases or blocks.

    All launches of a block see the machine in the same state, so the sign test alone would reject every machine that
    drifts. In simulations with 6 blocks of 12 cases and 3 % noise, a first block like the others is rejected in 2 % of
    experiments without drift, and in 8 % with blocks that differ by 3 %."""
    from scipy.stats import binomtest

    blocks = max((set(of_case) for of_case in regions.values()), key=len, default=set())
    complete = [of_case for of_case in regions.values() if set(of_case) == blocks]
    if 0 not in blocks or len(blocks) < FEWEST or len(complete) < FEWEST:
        return None
    times = np.log([[of_case[block] for block in sorted(blocks)] for of_case in complete])
    apart = times - np.median(times[:, 1:], axis=1, keepdims=True)
    shifts = np.expm1(np.median(apart, axis=0))
    unequal = apart[:, 0][apart[:, 0] != 0]
    p = float(binomtest(int((unequal > 0).sum()), len(unequal)).pvalue) if len(unequal) else 1.0
    return Settling(len(complete), float(shifts[0]), float(np.abs(shifts[1:]).max()), p)
