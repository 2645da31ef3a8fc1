"""Message sizes and reduced bytes of a collective, counted from the schedules that the engine executes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from scaleproof.simulate.alpha_beta_fit import Segment, seconds
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.spec.case import Operation


@dataclass(frozen=True, slots=True)
class Rounds:
    """For an array of one byte: the largest message of every round, in order, and the bytes that the busiest rank
    reduces."""

    messages: tuple[float, ...]
    reduced: float


@lru_cache(maxsize=256)
def rounds_of(algorithm: str, operation: Operation, ranks: int) -> Rounds:
    """Counted from the schedule. An all-reduce by `ring` has 2 (p - 1) messages of n / p and reduces n (p - 1) / p, as
    in the comments of MPICH's source (pairwise reduce-scatter and ring all-gather). By `halving_doubling` over p = 2^k
    ranks it has Rabenseifner's 2 lg p messages."""
    pattern, reduced = pattern_of(algorithm, operation, ranks), np.zeros(ranks)
    for round_, times in pattern.rounds:
        np.add.at(reduced, round_.destination[round_.reduces], round_.share[round_.reduces] * times)
    return Rounds(
        tuple(float(round_.share.max()) for round_, times in pattern.rounds for _ in range(times)),
        float(reduced.max(initial=0.0)),
    )


def messages_s(segments: tuple[Segment, ...], rounds: Rounds, nbytes: np.ndarray) -> np.ndarray:
    """Time in s of the rounds' messages without reduction, for arrays of `nbytes`. A round takes as long as its largest
    message."""
    total = np.zeros(len(nbytes))
    for share in rounds.messages:
        total += seconds(segments, share * nbytes)
    return total
