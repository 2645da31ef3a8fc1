"""Values of metrics per launch. They are stored in the index and used again while the record, its samples and the
metrics' code are unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from scaleproof.core.record_schema import Record
from scaleproof.record.host import usable_cores
from scaleproof.record.index_database import MetricKey
from scaleproof.record.parallel import in_parallel
from scaleproof.record.store import Store

Metric = Callable[[Record, pd.DataFrame], float | None]
SERIAL = 500
"""Up to this number of new launches, one process computes all metrics: more processes would take longer to start."""


class MetricValues:
    """Values for the launches of one store. Without a version of the metrics' code, or without an index, they are
    computed each time and not stored."""

    def __init__(self, store: Store, metrics: Mapping[str, Metric], version: str = "") -> None:
        self._store, self._metrics, self._version = store, metrics, version
        self._suite = version.rpartition("-")[0]
        self._database = store.index.database if store.index and version else None
        self._stored = self._database.metrics(self._suite, version) if self._database else {}
        self._new: dict[MetricKey, str] = {}

    def prepare(self, launches: Sequence[tuple[str, str]]) -> None:
        """Compute the missing values of readable records (case id and launch), on all cores if there are many."""
        unknown = [launch for launch in launches if (*launch, self._store.stamp(*launch)) not in self._stored]
        if self._database is None or len(unknown) <= SERIAL:
            return
        for computed in in_parallel(self._compute, sorted(unknown), int(usable_cores())):
            self._new |= computed
        self._stored |= self._new

    def of(self, case_id: str, launch: str) -> dict[str, float | None]:
        """The values of a readable record by the metric's name; None if a metric has no value for it."""
        key = (case_id, launch, self._store.stamp(case_id, launch))
        stored: dict[str, float | None] = json.loads(self._stored[key]) if key in self._stored else {}
        if self._metrics.keys() <= stored.keys():
            return {name: stored[name] for name in self._metrics}
        record = self._store.record(case_id, launch)
        if record is None:
            return {}
        samples = self._store.frame(record)
        computed = {name: metric(record, samples) for name, metric in self._metrics.items()}
        values = {name: None if value is None else float(value) for name, value in computed.items()}
        if key[2]:
            self._stored[key] = self._new[key] = json.dumps(stored | values)
        return values

    def keep(self) -> None:
        """Store the new values."""
        if self._database and self._new:
            self._database.add_metrics(self._suite, self._version, self._new)
        self._new = {}

    def _compute(self, launches: Sequence[tuple[str, str]]) -> dict[MetricKey, str]:
        for launch in launches:
            self.of(*launch)
        return self._new
