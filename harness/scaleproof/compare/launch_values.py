"""The values of one launch, by metric and message size."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from scaleproof.claims.metrics import METRICS, Metric, by_size
from scaleproof.claims.metrics_sizes import PER_SIZE
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import Record
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest
from scaleproof.spec.suite import find_suite

Key = tuple[str, int | None]
"""A metric's name and, for metrics per message size, the size in bytes."""
_BANDWIDTHS = ("transfer_bandwidth", "algbw", "busbw")


class Catalogue:
    """The harness's metrics and those that the suites of the launches add. `missing`: suites that are not installed
    here, whose metrics cannot be computed."""

    def __init__(self, suites: Iterable[str], names: Collection[str] = (), folder: Path | None = None) -> None:
        """`names`: the requested metrics, empty: all. SpecError with the nearest name, or when a suite's metrics are
        wrong."""
        self._of: dict[str, dict[str, Metric]] = {}
        self.missing: list[str] = []
        if not names or set(names) - METRICS.keys():
            self._load(sorted(set(suites)), folder)
        every = METRICS | {name: metric for own in self._of.values() for name, metric in own.items()}
        available = [name for name, metric in every.items() if metric.launch is not None or metric.size is not None]
        for name in names:
            if name not in available:
                missing = (
                    f"; suites that are not found here (--suites): {', '.join(self.missing)}" if self.missing else ""
                )
                raise SpecError(f"unknown metric {name!r}; {nearest(name, available)}{missing}")
        self._requested = set(names or available)

    def _load(self, suites: Iterable[str], folder: Path | None) -> None:
        for name in suites:
            try:
                suite_folder = find_suite(name, folder)
            except SpecError:
                self.missing.append(name)
                continue
            self._of[name] = suite_metrics(suite_folder)

    def of(self, suite: str, other: str) -> dict[str, Metric]:
        """The requested metrics for launches of `suite` that are compared with those of `other`, in the order of their
        table: those with equal unit and direction in both."""
        mine, theirs = (self._of.get(name, METRICS) for name in (suite, other))
        return {
            name: metric
            for name, metric in mine.items()
            if name in self._requested
            and name in theirs
            and (metric.unit, metric.direction) == (theirs[name].unit, theirs[name].direction)
        }


def launch_values(record: Record, store: Store, metrics: Mapping[str, Metric]) -> dict[Key, float]:
    """Finite values of these metrics, without the bandwidth of messages of 0 bytes."""
    samples = store.frame(record)
    values = dict[Key, float | None]()
    for name, metric in metrics.items():
        if metric.launch is not None:
            values[name, None] = metric.launch(record, samples)
        elif name not in METRICS:
            values |= {(name, nbytes): each for nbytes, each in metric.by_size(record, samples).items()}
    columns = {name: column for name, column in PER_SIZE.get(record.case.program, {}).items() if name in metrics}
    if columns:
        for row in by_size(record, samples).to_dict("records"):
            nbytes = int(row["nbytes"])
            values |= {
                (name, nbytes): float(row[column])
                for name, column in columns.items()
                if nbytes or name not in _BANDWIDTHS
            }
    return {key: float(each) for key, each in values.items() if each is not None and math.isfinite(each)}


def ordered(keys: Collection[Key], metrics: Iterable[str]) -> list[Key]:
    """The keys in the order of the metrics, then by size."""
    indices = {name: index for index, name in enumerate(metrics)}
    return sorted(keys, key=lambda key: (indices[key[0]], key[1] or 0))
