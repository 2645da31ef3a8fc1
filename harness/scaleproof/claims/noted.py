"""A metric that is a value which a launch notes once, under the metric's own name."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.made_up import reporting
from scaleproof.claims.metric import Direction, Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record


def value_of(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    """The last value of an event of rank 0; None without."""
    rows = columns(record, samples)
    found = rows.of(event)
    found = found[rows.rank[found] == 0]
    return float(rows.value[found[-1]]) if len(found) else None


def noted(name: str, unit: str, direction: Direction, doc: str, **further: Any) -> Metric:
    """The metric of an event of its name. `further`: fields of Metric."""
    return Metric(
        name, unit, direction, launch=partial(value_of, event=name), made_up=reporting(name), doc=doc, **further
    )
