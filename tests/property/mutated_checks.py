"""Shares of the mutated files of tools/mutated_files, for tests that several workers take up."""

from __future__ import annotations

from collections.abc import Sequence

from tools.mutated_files import SEED, TESTED
from tools.mutated_files.commands import Workplace
from tools.mutated_files.mutations import mutated

SHARES = range(4)


def faults(kinds: Sequence[str], share: int, place: Workplace) -> list[str]:
    """What is wrong with the tested files of these kinds, in one of the SHARES."""
    files = (mutated(number, SEED) for number in range(share, TESTED, len(SHARES)))
    outcomes = [place.outcome(file) for file in files if file.source.kind in kinds]
    assert len(outcomes) > 100 and {outcome.ending for outcome in outcomes} >= {"taken", "message"}
    return [outcome.fault_line for outcome in outcomes if outcome.fault is not None]
