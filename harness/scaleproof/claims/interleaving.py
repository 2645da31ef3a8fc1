"""Whether the two sides of a claim were launched in turns. They were not where one of them failed, or its code was
changed, and a later call of `run` made its launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaleproof.claims.arm_values import Values
from scaleproof.claims.notes import Note, NoteCode, note
from scaleproof.core.record_schema import Record

FEWEST = 2
"""Within a single block one side always begins before the other."""


def one_after_the_other(sides: Sequence[Values]) -> list[Note]:
    """A note where, among the blocks that one call began, all launches of one side began before those of the other."""
    if len(sides) != 2:
        return []
    first, second = (_began(launch.record for launch, _ in side) for side in sides)
    both = [
        (first[key], second[key])
        for key in first.keys() & second.keys()
        if min(len(first[key]), len(second[key])) >= FEWEST
    ]
    apart = sum(max(one) < min(other) or max(other) < min(one) for one, other in both)
    return [note(NoteCode.ONE_AFTER_THE_OTHER, apart=apart, campaigns=len(both))] if apart else []


def _began(records: Iterable[Record]) -> dict[str, list[str]]:
    """When the launches of each campaign's blocks began; predictions have no time."""
    began: dict[str, list[str]] = {}
    for record in records:
        if record.evidence != "simulated":
            began.setdefault(record.campaign_ids.block, []).append(str(record.started_at))
    return began
