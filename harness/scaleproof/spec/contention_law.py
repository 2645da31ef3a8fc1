"""Contention of the hosts of workers: a host becomes slow and fast again, a worker wanders, and every step has noise
(teng2018.md, generator)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

LEAST_STEPS = 256
"""Steps are drawn in powers of 2 of at least so many."""


class Contention(NamedTuple):
    """Numbers of the law, in the order of its text. `seconds`: median of a worker that is not slowed; `factor`: how
    much longer a slow one takes; `into`, `out`: probabilities that a fast one becomes slow in a step, and fast again;
    `correlation`: share of the ranks that are slow with their host, others by themselves; `rho`, `scale`: correlation
    from step to step and standard deviation of the logarithm's wandering; `noise`: standard deviation of the rest."""

    seconds: float
    factor: float
    into: float
    out: float
    hosts: float
    correlation: float
    rho: float
    scale: float
    noise: float

    def delay(self, rank: int, ranks: int, seed: int, step: int) -> float:
        """Of a rank in a step, in s."""
        return float(_delays(self, ranks, seed, max(LEAST_STEPS, 1 << step.bit_length()))[step, rank])

    def mistake(self) -> str:
        """What is wrong with the numbers; empty where nothing is."""
        if self.into > 1 or self.out > 1 or self.hosts < 1 or self.hosts % 1:
            return "IN and OUT are probabilities, HOSTS is a whole number of at least 1"
        if self.correlation > 1 or self.rho > 1:
            return "CORRELATION and RHO are at most 1"
        return "FACTOR is at least 1" if self.factor < 1 else ""


@lru_cache
def slow_chains(seed: tuple[int, int], into: float, out: float, chains: int, steps: int) -> np.ndarray:
    """Whether each of several is slow, bool (steps, chains): chains of two states, from fast. More steps begin with
    those of fewer."""
    slow = np.zeros((steps, chains), bool)
    for step, row in enumerate(np.random.default_rng(seed).random((steps, chains))):
        before = slow[step - 1] if step else np.zeros(chains, bool)
        slow[step] = np.where(before, row >= out, row < into)
    return slow


@lru_cache(16)
def _delays(law: Contention, ranks: int, seed: int, steps: int) -> np.ndarray:
    """In s, (steps, ranks). Rank r is on host r mod HOSTS."""
    hosts = np.arange(ranks) % int(law.hosts)
    slow = slow_chains((seed, 22), law.into, law.out, int(law.hosts), steps)[:, hosts]
    alone = np.random.default_rng((seed, 23)).permutation(ranks)[round(law.correlation * ranks) :]
    slow[:, alone] = slow_chains((seed, 24), law.into, law.out, ranks, steps)[:, alone]
    wandering = np.random.default_rng((seed, 25)).standard_normal((steps, ranks))
    for step in range(1, steps):
        wandering[step] = law.rho * wandering[step - 1] + math.sqrt(1 - law.rho**2) * wandering[step]
    noise = np.random.default_rng((seed, 26)).standard_normal((steps, ranks))
    factors: np.ndarray = np.exp(law.scale * wandering + law.noise * noise)
    return law.seconds * factors * np.where(slow, law.factor, 1.0)
