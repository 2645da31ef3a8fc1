"""Made-up launches whose exchange takes, or moves, as much as a metric wants."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from scaleproof.claims.made_up import Event, MadeUp, MakeUp, Wanted, possible
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase


def made_up_delay(metric: Callable[[Record, pd.DataFrame], float | None]) -> MakeUp:
    """Launches whose exchange takes as long as the metric, which grows with it, needs."""

    def lasting(seconds: float) -> MadeUp:
        return MadeUp((Event("delay", 0.0, seconds, value=1.0), Event("reduce"), Event("update")))

    of_a_second: dict[str, float] = {}

    def made_up(wanted: Wanted) -> MadeUp:
        case = wanted.case
        if case.case_id not in of_a_second:
            of_a_second[case.case_id] = lasting(1.0).value(metric, case)
        return lasting(possible(wanted.known) / of_a_second[case.case_id])

    return made_up


def made_up_traffic(least: Callable[[OwnCase], float]) -> MakeUp:
    """Launches of one exchange, for which each node's interface counted so many times the least."""

    def made_up(wanted: Wanted) -> MadeUp:
        assert isinstance(wanted.case, OwnCase)
        counted = round(possible(wanted.known) * least(wanted.case))
        return MadeUp((Event("delay", 0.0, 1.0, value=1.0),), wire_bytes=counted)

    return made_up
