"""False alarms and resolution from the kept values: one value per launch, a pair of identical arms in each block."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from scaleproof.calibrate.measured_noise_floors import floor_share, floor_share_of_launches, spread
from scaleproof.record.machine import floor_of_launches
from scaleproof.stats.arm_difference import Finding
from scaleproof.stats.compare_arms import compare
from scaleproof.stats.intervals import smallest_count

LAUNCHES = smallest_count()
"""Launches an arm of a comparison, as plans have."""
FLOOR_BLOCKS = 30
"""Blocks before all comparisons; the noise floor comes from these alone, as in a calibration."""
COMPARISONS, WANTED = 100, 95
"""Comparisons with a scaled arm, and how many of them must find it."""
STEP, STEPS = 0.001, 1000
"""Slowdowns are tried in these steps, up to twice the time."""
CONFIDENCE = 0.95
SEED = 20_160_222


@dataclass(frozen=True, slots=True)
class Pairs:
    """Values of two identical arms; element k of both ran in one block."""

    first: np.ndarray
    second: np.ndarray
    higher_is_better: bool
    calls: Sequence[int] = ()
    """Which call of `run` made the block; empty: one call made all."""

    @classmethod
    def of(
        cls,
        first: Mapping[int, float],
        second: Mapping[int, float],
        higher_is_better: bool,
        calls: Mapping[int, int] | None = None,
    ) -> Pairs:
        """From the values by block: those of the blocks that both have. `calls`: which call made each block."""
        blocks = sorted(first.keys() & second.keys())
        above, below = (np.array([side[block] for block in blocks]) for side in (first, second))
        return cls(above, below, higher_is_better, [calls[block] for block in blocks] if calls else ())

    def comparison(self, blocks: np.ndarray, swapped: np.ndarray, slowdown: float, floor: float) -> Finding:
        """What a comparison finds in these blocks, after arms were swapped in some of them and one of them slowed."""
        above = np.where(swapped, self.second[blocks], self.first[blocks])
        below = np.where(swapped, self.first[blocks], self.second[blocks])
        slowed = above / (1 + slowdown) if self.higher_is_better else above * (1 + slowdown)
        return compare(slowed, below, paired=True, floor=floor).finding

    @property
    def slower(self) -> Finding:
        """How a slowdown shows."""
        return "lower" if self.higher_is_better else "higher"

    @property
    def floor(self) -> float:
        """The noise floor, from the first blocks."""
        return floor_share(self.first[:FLOOR_BLOCKS], self.second[:FLOOR_BLOCKS], LAUNCHES)

    @property
    def groups(self) -> list[np.ndarray]:
        """Neighbouring blocks of comparisons that share no launch."""
        return [np.arange(start, start + LAUNCHES) for start in self.apart(LAUNCHES, FLOOR_BLOCKS)]

    def starts(self, launches: int, first: int) -> list[int]:
        """From block `first` on, where a comparison can begin: one call made all of its blocks, as with a campaign of a
        claim."""
        calls = self.calls or [0] * len(self.first)
        begins = range(first, len(calls) - launches + 1)
        return [start for start in begins if len(set(calls[start : start + launches])) == 1]

    def apart(self, launches: int, first: int) -> list[int]:
        """Those of `starts` whose comparisons share no launch."""
        chosen: list[int] = []
        for start in self.starts(launches, first):
            if not chosen or start >= chosen[-1] + launches:
                chosen.append(start)
        return chosen


@dataclass(frozen=True, slots=True)
class Alarms:
    """Differences found between identical arms. Ways to swap the arms of a comparison share its launches: the interval
    counts only comparisons that share none."""

    as_run: int
    """Comparisons that found a difference with their arms as they ran."""
    comparisons: int
    swapped: int
    """Ways to swap the arms of a comparison that found a difference."""
    ways: int
    independent: int
    """Comparisons that share no launch."""

    @property
    def rate(self) -> float:
        """Share of the ways to swap."""
        return self.swapped / self.ways if self.ways else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's at 95 %, with as many trials as there are independent comparisons. The share over all
        swaps of one of them is a mean, which spreads at most as much as a single outcome does."""
        hits, tail = self.rate * self.independent, (1 - CONFIDENCE) / 2
        low = float(beta.ppf(tail, hits, self.independent - hits + 1)) if hits else 0.0
        high = float(beta.ppf(1 - tail, hits + 1, self.independent - hits)) if hits < self.independent else 1.0
        return low, high


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the pool says of one kind."""

    blocks: int
    floor: float
    spread: float
    alarms: Alarms
    resolution: float | None
    """The smallest slowdown that 95 of 100 comparisons find; None: not even twice the time."""
    found: int
    """Of 100 comparisons, at that slowdown."""


def outcome(pairs: Pairs) -> Outcome:
    """False alarms and resolution of one kind. SystemExit where the pool is too small."""
    if len(pairs.first) < FLOOR_BLOCKS + LAUNCHES:
        raise SystemExit(f"{len(pairs.first)} blocks; the study needs at least {FLOOR_BLOCKS + LAUNCHES}; run again")
    if not pairs.groups:
        raise SystemExit(f"no call made {LAUNCHES} neighbouring blocks after the first {FLOOR_BLOCKS}; run more blocks")
    resolution, found = _resolution(pairs)
    first, second = pairs.first[:FLOOR_BLOCKS], pairs.second[:FLOOR_BLOCKS]
    return Outcome(len(pairs.first), pairs.floor, spread(first, second), _alarms(pairs), resolution, found)


def pooled(alarms: Sequence[Alarms], independent: int) -> Alarms:
    """False alarms of all kinds together; message sizes of one launch are not independent of each other."""
    return Alarms(
        as_run=sum(kind.as_run for kind in alarms),
        comparisons=sum(kind.comparisons for kind in alarms),
        swapped=sum(kind.swapped for kind in alarms),
        ways=sum(kind.ways for kind in alarms),
        independent=independent,
    )


def _alarms(pairs: Pairs) -> Alarms:
    floor, ways = pairs.floor, [np.array(way) for way in itertools.product((False, True), repeat=LAUNCHES)]
    alarms = [
        [pairs.comparison(group, way, 0.0, floor) in ("higher", "lower") for way in ways] for group in pairs.groups
    ]
    as_run = sum(group[0] for group in alarms)  # the first way swaps nothing
    return Alarms(as_run, len(alarms), sum(map(sum, alarms)), len(alarms) * len(ways), len(alarms))


def _resolution(pairs: Pairs) -> tuple[float | None, int]:
    generator, floor = np.random.default_rng(SEED), pairs.floor
    possible = np.array(pairs.starts(LAUNCHES, FLOOR_BLOCKS))
    starts = possible[generator.integers(len(possible), size=COMPARISONS)]
    swapped = generator.integers(2, size=(COMPARISONS, LAUNCHES)).astype(bool)

    def found(steps: int) -> int:
        return sum(
            pairs.comparison(np.arange(start, start + LAUNCHES), way, steps * STEP, floor) == pairs.slower
            for start, way in zip(starts, swapped, strict=True)
        )

    if found(STEPS) < WANTED:
        return None, found(STEPS)
    low, high = 0, STEPS  # a larger slowdown is found wherever a smaller one is
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= WANTED else (middle, high)
    return high * STEP, found(high)


def share_beyond_floor(pairs: Pairs, launches: int, ways: int = 1000) -> float | None:
    """Share of comparisons of identical arms with so many launches whose medians differ by more than the floor of so
    many: of neighbouring blocks after those that the floor comes from, with arms swapped at random. None where no
    call made so many."""
    generator, limit = np.random.default_rng(SEED), np.log1p(floor_of_launches(pairs.floor, LAUNCHES, launches))
    starts = pairs.apart(launches, FLOOR_BLOCKS)
    beyond = []
    for start in starts:
        one, other = pairs.first[start : start + launches], pairs.second[start : start + launches]
        swapped = generator.integers(2, size=(ways, launches)).astype(bool)
        medians = [np.median(np.where(swapped, *sides), axis=1) for sides in ((other, one), (one, other))]
        beyond.append(np.mean(np.abs(np.log(medians[0] / medians[1])) > limit))
    return float(np.mean(beyond)) if beyond else None


def share_beyond_own_floor(pairs: Pairs) -> float:
    """Share of comparisons of identical arms whose medians differ by more than the floor that the launches of one of
    these arms give: the way in which a suite's own launches give it."""
    beyond = []
    for group in pairs.groups:
        sides = pairs.first[group], pairs.second[group]
        difference = abs(np.log(np.median(sides[0]) / np.median(sides[1])))
        beyond += [difference > np.log1p(floor_share_of_launches(side, LAUNCHES)) for side in sides]
    return float(np.mean(beyond))


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Real launches with a slowdown of the resolution, against plain ones."""

    handicap: float
    found: int
    comparisons: int
    measured: float
    """Slowdown by the medians of all launches."""


def confirmation(pairs: Pairs, handicap: float, floor: float) -> Confirmation:
    """`first`: the slowed launches; `second`: the plain ones of the same blocks."""
    starts = pairs.apart(LAUNCHES, 0)
    nothing = np.zeros(LAUNCHES, dtype=bool)
    findings = [pairs.comparison(np.arange(start, start + LAUNCHES), nothing, 0.0, floor) for start in starts]
    ratio = float(np.median(pairs.first) / np.median(pairs.second))
    slowdown = (1 / ratio if pairs.higher_is_better else ratio) - 1
    return Confirmation(handicap, findings.count(pairs.slower), len(findings), slowdown)
