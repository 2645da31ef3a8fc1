"""Every number that one launch gives, by metric and message size."""

from __future__ import annotations

import math
from collections.abc import Collection

from harness.claims.metrics import METRICS, Metric, by_size
from harness.claims.metrics_sizes import PER_SIZE
from harness.record.schema import Record
from harness.record.store import Store
from harness.spec.errors import SpecError
from harness.spec.registry import nearest

Key = tuple[str, int | None]
"""A metric's name and, for metrics per message size, the size in bytes."""
_BANDWIDTHS = ("transfer_bandwidth", "algbw", "busbw")


def comparable() -> list[Metric]:
    """Metrics that have a value for a single launch, in the order of their table."""
    sized = {name for columns in PER_SIZE.values() for name in columns}
    return [metric for metric in METRICS.values() if metric.launch is not None or metric.name in sized]


def chosen(names: Collection[str]) -> set[str]:
    """The metrics asked for, all where none is; SpecError with the nearest name."""
    known = [metric.name for metric in comparable()]
    for name in names:
        if name not in known:
            raise SpecError(f"unknown metric {name!r}; {nearest(name, known)}")
    return set(names or known)


def launch_values(record: Record, store: Store, wanted: Collection[str]) -> dict[Key, float]:
    """Finite values of the wanted metrics. The bandwidth of messages of 0 bytes says nothing and is left out."""
    samples = store.samples(record).to_pandas()
    found: dict[Key, float | None] = {}
    for metric in comparable():
        if metric.launch is not None and metric.name in wanted:
            found[metric.name, None] = metric.launch(record, samples)
    columns = {name: column for name, column in PER_SIZE.get(record.case.program, {}).items() if name in wanted}
    if columns:
        for row in by_size(record, samples).to_dict("records"):
            nbytes = int(row["nbytes"])
            found |= {(name, nbytes): float(row[column]) for name, column in columns.items() if nbytes or name not in _BANDWIDTHS}
    return {key: float(value) for key, value in found.items() if value is not None and math.isfinite(value)}


def ordered(keys: Collection[Key]) -> list[Key]:
    """In the order of METRICS, then by size."""
    places = {name: place for place, name in enumerate(METRICS)}
    return sorted(keys, key=lambda key: (places[key[0]], key[1] or 0))
