"""Every number that one launch gives, by metric and message size."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from harness.claims.metrics import METRICS, Metric, by_size, suite_metrics
from harness.claims.metrics_sizes import PER_SIZE
from harness.record.schema import Record
from harness.record.store import Store
from harness.spec.errors import SpecError
from harness.spec.registry import nearest
from harness.spec.suite import find_suite

Key = tuple[str, int | None]
"""A metric's name and, for metrics per message size, the size in bytes."""
_BANDWIDTHS = ("transfer_bandwidth", "algbw", "busbw")


class Catalogue:
    """The harness's metrics and those that the suites of the launches add. `missing` are suites that are not here; theirs cannot be computed."""

    def __init__(self, suites: Iterable[str], folder: Path | None = None) -> None:
        self._of: dict[str, dict[str, Metric]] = {}
        self.missing: list[str] = []
        for name in sorted(set(suites)):
            try:
                found = find_suite(name, folder)
            except SpecError:
                self.missing.append(name)
                continue
            self._of[name] = suite_metrics(found)

    def of(self, *suites: str) -> dict[str, Metric]:
        """All metrics for launches of these suites, in the order of their tables."""
        return METRICS | {name: metric for suite in suites for name, metric in self._of.get(suite, {}).items()}

    def chosen(self, names: Collection[str]) -> set[str]:
        """The metrics asked for, all where none is; SpecError with the nearest name."""
        sized = {name for columns in PER_SIZE.values() for name in columns}
        known = [name for name, metric in self.of(*self._of).items() if metric.launch is not None or metric.size is not None or name in sized]
        for name in names:
            if name not in known:
                raise SpecError(f"unknown metric {name!r}; {nearest(name, known)}")
        return set(names or known)


def launch_values(record: Record, store: Store, wanted: Collection[str], metrics: Mapping[str, Metric]) -> dict[Key, float]:
    """Finite values of the wanted metrics. The bandwidth of messages of 0 bytes says nothing and is left out."""
    samples = store.samples(record).to_pandas()
    sizes, found = getattr(record.case, "sizes", ()), dict[Key, float | None]()
    for name, metric in metrics.items():
        if metric.launch is not None and name in wanted:
            found[name, None] = metric.launch(record, samples)
        elif metric.size is not None and name in wanted and name not in METRICS:
            found |= {(name, nbytes): metric.size(record, samples, nbytes) for nbytes in sizes}
    columns = {name: column for name, column in PER_SIZE.get(record.case.program, {}).items() if name in wanted}
    if columns:
        for row in by_size(record, samples).to_dict("records"):
            nbytes = int(row["nbytes"])
            found |= {(name, nbytes): float(row[column]) for name, column in columns.items() if nbytes or name not in _BANDWIDTHS}
    return {key: float(value) for key, value in found.items() if value is not None and math.isfinite(value)}


def ordered(keys: Collection[Key], metrics: Iterable[str]) -> list[Key]:
    """In the order of the metrics, then by size."""
    places = {name: place for place, name in enumerate(metrics)}
    return sorted(keys, key=lambda key: (places[key[0]], key[1] or 0))
