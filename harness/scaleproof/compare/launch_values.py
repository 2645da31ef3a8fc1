"""Every number that one launch gives, by metric and message size."""

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
    """The harness's metrics and those that the suites of the launches add. `missing` are suites that are not here:
    theirs cannot be computed."""

    def __init__(self, suites: Iterable[str], names: Collection[str] = (), folder: Path | None = None) -> None:
        """`names`: the metrics asked for, all where none is; SpecError with the nearest name, or when a suite's
        models.py is wrong."""
        self._of: dict[str, dict[str, Metric]] = {}
        self.missing: list[str] = []
        if not names or set(names) - METRICS.keys():
            self._load(sorted(set(suites)), folder)
        every = METRICS | {name: metric for own in self._of.values() for name, metric in own.items()}
        known = [name for name, metric in every.items() if metric.launch is not None or metric.size is not None]
        for name in names:
            if name not in known:
                unseen = (
                    f"; suites that are not found here (--suites): {', '.join(self.missing)}" if self.missing else ""
                )
                raise SpecError(f"unknown metric {name!r}; {nearest(name, known)}{unseen}")
        self._wanted = set(names or known)

    def _load(self, suites: Iterable[str], folder: Path | None) -> None:
        for name in suites:
            try:
                found = find_suite(name, folder)
            except SpecError:
                self.missing.append(name)
                continue
            self._of[name] = suite_metrics(found)

    def of(self, suite: str, other: str) -> dict[str, Metric]:
        """The wanted metrics for launches of `suite` that are compared with those of `other`, in the order of their
        table: those that mean the same in both."""
        mine, theirs = (self._of.get(name, METRICS) for name in (suite, other))
        return {
            name: metric
            for name, metric in mine.items()
            if name in self._wanted
            and name in theirs
            and (metric.unit, metric.direction) == (theirs[name].unit, theirs[name].direction)
        }


def launch_values(record: Record, store: Store, metrics: Mapping[str, Metric]) -> dict[Key, float]:
    """Finite values of these metrics. The bandwidth of messages of 0 bytes says nothing and is left out."""
    samples = store.frame(record)
    found = dict[Key, float | None]()
    for name, metric in metrics.items():
        if metric.launch is not None:
            found[name, None] = metric.launch(record, samples)
        elif name not in METRICS:
            found |= {(name, nbytes): value for nbytes, value in metric.by_size(record, samples).items()}
    columns = {name: column for name, column in PER_SIZE.get(record.case.program, {}).items() if name in metrics}
    if columns:
        for row in by_size(record, samples).to_dict("records"):
            nbytes = int(row["nbytes"])
            found |= {
                (name, nbytes): float(row[column])
                for name, column in columns.items()
                if nbytes or name not in _BANDWIDTHS
            }
    return {key: float(value) for key, value in found.items() if value is not None and math.isfinite(value)}


def ordered(keys: Collection[Key], metrics: Iterable[str]) -> list[Key]:
    """In the order of the metrics, then by size."""
    places = {name: place for place, name in enumerate(metrics)}
    return sorted(keys, key=lambda key: (places[key[0]], key[1] or 0))
