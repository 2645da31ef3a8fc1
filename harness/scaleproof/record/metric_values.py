"""Values of metrics of single launches, kept as long as record, samples and the code of the metrics are the same."""

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
"""New launches up to which one process computes all metrics: forking costs more."""


class MetricValues:
    """Of the launches of one store. Without a version of the metrics' code, or with a store that has no index, all is
    computed each time and nothing is kept."""

    def __init__(self, store: Store, metrics: Mapping[str, Metric], version: str = "") -> None:
        self._store, self._metrics, self._version = store, metrics, version
        self._suite = version.rpartition("-")[0]
        self._database = store.index.database if store.index and version else None
        self._known = self._database.metrics(self._suite, version) if self._database else {}
        self._new: dict[MetricKey, str] = {}

    def prepare(self, launches: Sequence[tuple[str, str]]) -> None:
        """Compute what is not known of whole records, each a case and a launch, by all cores where it is much."""
        unknown = [one for one in launches if (*one, self._store.stamp(*one)) not in self._known]
        if self._database is None or len(unknown) <= SERIAL:
            return
        for computed in in_parallel(self._compute, sorted(unknown), int(usable_cores())):
            self._new |= computed
        self._known |= self._new

    def of(self, case_id: str, launch: str) -> dict[str, float | None]:
        """The metrics' values of a whole record, by name; None where it has none."""
        key = (case_id, launch, self._store.stamp(case_id, launch))
        kept: dict[str, float | None] = json.loads(self._known[key]) if key in self._known else {}
        if self._metrics.keys() <= kept.keys():
            return {name: kept[name] for name in self._metrics}
        record = self._store.record(case_id, launch)
        if record is None:
            return {}
        samples = self._store.frame(record)
        computed = {name: metric(record, samples) for name, metric in self._metrics.items()}
        values = {name: None if value is None else float(value) for name, value in computed.items()}
        if key[2]:
            self._known[key] = self._new[key] = json.dumps(kept | values)
        return values

    def keep(self) -> None:
        """Write what is new."""
        if self._database and self._new:
            self._database.add_metrics(self._suite, self._version, self._new)
        self._new = {}

    def _compute(self, launches: Sequence[tuple[str, str]]) -> dict[MetricKey, str]:
        for launch in launches:
            self.of(*launch)
        return self._new
