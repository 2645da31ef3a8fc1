"""The outcome of a comparison for continuous integration, the reason, and a warning where the launches are too few to
find a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaleproof.compare.comparison_schema import Outcome, OutcomeReason, PairOut, Row, WarningOut


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome, the reason where the numbers do not show it, and the metrics that the reason is about."""

    outcome: Outcome
    reason: OutcomeReason | None = None
    metrics: tuple[str, ...] = ()


def decide(pairs: Sequence[PairOut], regressions: int, across_machines: bool) -> Decision:
    """The outcome of all pairs together."""
    if regressions:
        return Decision("regression")
    if not pairs:
        return Decision("undecided", OutcomeReason.NOTHING_COMPARED)
    if not across_machines and not any(pair.same_machine for pair in pairs):
        return Decision("other machine", OutcomeReason.OTHER_MACHINES)
    rows = [row for pair in pairs for row in pair.rows]
    worse = {row.metric for row in rows if row.without_floor and row.direction not in (None, row.finding)}
    if worse:
        return Decision("undecided", OutcomeReason.NO_NOISE_FLOOR, tuple(sorted(worse)))
    return Decision("no regression")


def too_many_rows(pairs: Sequence[PairOut], confidence: float) -> list[WarningOut]:
    """A warning where so many rows are tested with so few launches that a change of one of them alone could not become
    significant."""
    tested = [(pair, row) for pair in pairs for row in pair.rows if row.p_value is not None]
    blind = [row for pair, row in tested if _smallest_p(pair, row) * len(tested) > 1 - confidence]
    if not blind:
        return []
    message = (
        f"{len(blind)} of {len(tested)} rows have too few launches for so many rows: a change of one of them alone "
        "could not become significant, only one that many rows share; "
        "name metrics (--metric), choose cases, or take more launches"
    )
    return [WarningOut(code="too_many_rows", message=message)]


def _smallest_p(pair: PairOut, row: Row) -> float:
    """The smallest p-value of an exact two-sided rank test with that many launches."""
    first, second = row.n
    return 2.0 / 2**first if pair.paired else 2.0 / math.comb(first + second, first)
