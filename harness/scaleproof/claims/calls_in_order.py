"""The calls of strategies, numbered alike on all ranks and in all steps."""

from __future__ import annotations

import numpy as np

from scaleproof.claims.sample_columns import Columns


def calls_in_order(rows: Columns, calls: np.ndarray, ready: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `communication` and of their waits in the `queue`, by rank, step and number. Calls get ready in the same
    order on all ranks; on several channels they start in any order, each where its wait ends."""
    calls = _sorted(calls, rows.end, rows.start, rows.step, rows.rank)
    waits = _sorted(ready, rows.start, rows.end, rows.step, rows.rank)
    if not all(np.array_equal(column[calls], column[waits]) for column in (rows.rank, rows.step)):
        return calls, _sorted(ready, rows.end, rows.start, rows.step, rows.rank)
    numbers = np.lexsort((rows.end[waits], rows.start[waits], rows.step[waits], rows.rank[waits]))
    return calls[numbers], waits[numbers]


def _sorted(chosen: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Rows by the last column first."""
    return chosen[np.lexsort([column[chosen] for column in columns])]
