"""Several tests that together decide one thing: Holm's correction, and how many blocks it needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from scaleproof.stats.intervals import CONFIDENCE
from scaleproof.stats.rank_tests import null_below


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given (Holm 1979): to reject those of at most alpha makes any false rejection
    among all tests at most as likely as alpha, whatever their dependence."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, (len(p_values) - place) * p_values[index])
        adjusted[index] = min(1.0, largest)
    return adjusted


@cache
def blocks_needed(tests: int, confidence: float = CONFIDENCE) -> int:
    """Fewest blocks with which one of so many signed-rank tests can be significant after Holm's correction: 6 for one
    test, 7 for two and three, 8 for four to six."""
    blocks = 1
    while 2 * float(null_below(blocks, blocks, True)[0]) * tests > 1 - confidence + 1e-12:
        blocks += 1
    return blocks
