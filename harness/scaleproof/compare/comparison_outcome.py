"""What a comparison means for continuous integration: one word, why, and what its launches could have found at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scaleproof.compare.comparison_schema import Outcome, PairOut, Row, WarningOut
from scaleproof.compare.pair_floors import without_floor


def outcome(pairs: Sequence[PairOut], regressions: int, across_machines: bool) -> tuple[Outcome, str]:
    """The word, and the reason where there is one."""
    if regressions:
        return "regression", ""
    if not pairs:
        return "undecided", "nothing was compared, so nothing can be said about a regression; see the unpaired cases"
    if not across_machines and not any(pair.same_machine for pair in pairs):
        return (
            "other machine",
            "A and B ran on different machines, so nothing counts for or against B; --across-machines lets it count",
        )
    rows = [row for pair in pairs for row in pair.rows]
    worse = {row.metric for row in rows if row.change == "worse" and row.floor is None}
    if worse:
        why = f"{', '.join(sorted(worse))} got significantly worse, but no noise floor is known to judge it by; {without_floor(worse)}"
        return "undecided", why
    return "no regression", ""


def too_many_rows(pairs: Sequence[PairOut], confidence: float) -> list[WarningOut]:
    """A warning where so many rows are tested with so few launches that a change of one of them alone could not become
    significant."""
    tested = [(pair, row) for pair in pairs for row in pair.rows if row.p_value is not None]
    blind = [row for pair, row in tested if _smallest_p(pair, row) * len(tested) > 1 - confidence]
    if not blind:
        return []
    message = (
        f"{len(blind)} of {len(tested)} rows have too few launches for so many rows: a change of one of them alone could not become significant, only one "
        "that many rows share; name metrics (--metric), choose cases, or take more launches"
    )
    return [WarningOut(code="too_many_rows", message=message)]


def _smallest_p(pair: PairOut, row: Row) -> float:
    """What an exact two-sided rank test of that many launches gives at least."""
    first, second = row.n
    return 2.0 / 2**first if pair.paired else 2.0 / math.comb(first + second, first)
