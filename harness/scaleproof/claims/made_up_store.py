"""A store of made-up launches, in memory: a claim is judged by them as by launches that ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from scaleproof.claims.launch_pool import PARAMETERS
from scaleproof.claims.made_up import MadeUp
from scaleproof.core.record_schema import Record
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch

NOWHERE = Path("/nonexistent")
"""Its results folder: there is none."""


class MadeUpStore(Store):
    """Holds what `add` gave it."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self._by_case: dict[str, list[Record]] = {}
        self._made: dict[str, MadeUp] = {}

    def add(self, planned: PlannedLaunch, made: MadeUp) -> None:
        """A launch that ended well, on a machine with a core for every thread."""
        record = made.record(planned.case, planned.plan_index, planned.seed, planned.campaign)
        self._by_case.setdefault(record.case_id, []).append(record)
        self._made[record.launch] = made

    def records(self, case_id: str | None = None) -> Iterator[Record]:
        """See Store."""
        cases = self._by_case if case_id is None else [case_id]
        for case in cases:
            yield from self._by_case.get(case, [])

    def frame(self, record: Record) -> pd.DataFrame:
        """See Store."""
        return self._made[record.launch].samples(record.case.ranks)

    def array(self, record: Record, name: str) -> np.ndarray | None:
        """See Store."""
        return self._made[record.launch].parameters if name == PARAMETERS else None
