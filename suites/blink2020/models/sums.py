"""Whether what ranks have after a collective is exact."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.made_up import reporting
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

WRONG = "wrong"
"""The event with which programs/link_collectives.py counts elements in each step, on each rank."""


def wrong_elements(record: Record, samples: pd.DataFrame) -> float | None:
    """Elements that differ, bit by bit, from the sum of all ranks' arrays, or from the root's after a broadcast: the
    most on one rank in one step, the warm-up included (suite blink2020).

    wrong_elements = largest number of elements that differ, over ranks and steps

    Values are whole numbers that float32 has exactly, so that every order of adding gives the same bits. None where a
    launch counted nothing.
    """
    counted = samples.loc[samples["event"] == WRONG, "value"]
    return float(counted.max()) if len(counted) else None


METRICS = [
    Metric(
        "wrong_elements",
        "elements",
        "lower",
        launch=wrong_elements,
        own_count=True,
        made_up=reporting(WRONG, ranks=None),
    )
]
