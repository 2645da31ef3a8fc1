"""What a launch of the suite's program has noted of each variant, by its name; and made-up launches with such notes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

ORIGINAL, BEYOND = "original", "beyond_single"
BACK, NEVER = "2_multi", "2_never"
"""The same first look; dropped samples come back, or never do."""
LIBRARY, UNSHRUNK = "library", "library_unshrunk"
Notes = Mapping[str, Mapping[str, float]]
"""By event, then by variant."""


def names_of(case: AnyCase) -> list[str]:
    """The variants of a case; none for another program."""
    return str(case.options.get("variants", "")).split() if isinstance(case, OwnCase) else []


def shrinking(case: AnyCase) -> list[str]:
    """Those that drop samples."""
    return [name for name in names_of(case) if name not in (ORIGINAL, LIBRARY, UNSHRUNK)]


def notes(record: Record, samples: pd.DataFrame, event: str) -> dict[str, float]:
    """A value of each variant that has one."""
    rows, names = columns(record, samples), names_of(record.case)
    return {names[rows.step[row]]: float(rows.value[row]) for row in rows.of(event) if rows.step[row] < len(names)}


def seconds(record: Record, samples: pd.DataFrame, event: str = "solve") -> dict[str, float]:
    """From the first rank's start to the last one's end, s. Several of one variant are added up."""
    if not times_count(record):
        return {}
    rows, names, found = columns(record, samples), names_of(record.case), dict[str, float]()
    chosen = rows.of(event)
    for step in np.unique(rows.step[chosen]):
        of = chosen[rows.step[chosen] == step]
        starts, ends = (np.sort(moments[of]).reshape(-1, _ranks(rows.rank[of])) for moments in (rows.start, rows.end))
        found[names[step]] = float((ends.max(axis=1) - starts.min(axis=1)).sum()) / SECOND
    return found


def _ranks(ranks: np.ndarray) -> int:
    """How many there are: each has the event equally often."""
    return len(np.unique(ranks))


def made(
    case: AnyCase, values: Notes, lasting: Notes | None = None, facts: Mapping[str, object] | None = None
) -> MadeUp:
    """A launch with these values on rank 0, and events that last so many s on every rank."""
    names = names_of(case)
    if not names:
        raise ImpossibleValue("the case trains no machine")
    noted = [
        Event(event, value=value, step=names.index(name), ranks=(0,))
        for event, of in values.items()
        for name, value in of.items()
    ]
    lasted = [
        Event(event, 0.0, value, step=names.index(name))
        for event, of in (lasting or {}).items()
        for name, value in of.items()
    ]
    return MadeUp((*noted, *lasted), facts=dict(facts or {}))


def has(case: AnyCase, *wanted: str) -> None:
    """ImpossibleValue for a case without one of these variants."""
    for name in wanted:
        if name not in names_of(case):
            raise ImpossibleValue(f"the case has no variant {name}")
