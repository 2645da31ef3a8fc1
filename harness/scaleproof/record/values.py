"""What metrics give of single launches, kept from one time to the next: as long as record, samples and the code of the
metrics are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import pyarrow as pa

from scaleproof.core.record_schema import Record
from scaleproof.record.host import usable_cores
from scaleproof.record.segments import Segments
from scaleproof.record.side_by_side import side_by_side
from scaleproof.record.store import Store

Metric = Callable[[Record, pd.DataFrame], float | None]
KIND, TABLE = "values", "values"
MANY = 16
"""Pieces from which on they are put together."""
ALONE = 500
"""Launches up to which one core computes what is not known: forking costs more."""
_SCHEMA = pa.schema([("case", pa.string()), ("launch", pa.string()), ("stamp", pa.string()), ("values", pa.string())])
Found = dict[str, float | None]


class Values:
    """Of the launches of one store. Without a version of the metrics' code, or with a store that has no index, all is
    computed anew and nothing kept."""

    def __init__(self, store: Store, metrics: Mapping[str, Metric], version: str = "") -> None:
        self._store, self._metrics = store, metrics
        self._segments = Segments(store.results, KIND, version) if version else None
        self._known: dict[tuple[str, str, str], str] = {}
        self._new: dict[tuple[str, str, str], str] = {}
        self._pieces: list[str] = []
        self._load()

    def _load(self) -> None:
        for name, tables in self._segments.read() if self._segments else ():
            self._pieces.append(name)
            if TABLE not in tables:
                continue  # another process put it together with others
            columns = [tables[TABLE].column(column).to_pylist() for column in _SCHEMA.names]
            self._known |= {
                (case_id, launch, stamp): found for case_id, launch, stamp, found in zip(*columns, strict=True)
            }

    def prepare(self, launches: Sequence[tuple[str, str]]) -> None:
        """Compute by all cores what is not known of whole records, each a case and a launch, where it is much."""
        unknown = (
            [one for one in launches if (*one, self._store.stamp(*one)) not in self._known] if self._segments else []
        )
        if len(unknown) > ALONE:
            side_by_side(sorted(unknown), self._write_down, int(usable_cores()))
            self._pieces.clear()
            self._load()

    def _write_down(self, share: Sequence[tuple[str, str]]) -> None:
        for one in share:
            self.of(*one)
        if self._new:
            self._add(self._new)
        self._new = {}

    def of(self, case_id: str, launch: str) -> Found:
        """The metrics' values of a whole record, by name; None where it has none."""
        key = (case_id, launch, self._store.stamp(case_id, launch))
        kept: Found = json.loads(self._known[key]) if key in self._known else {}
        if self._metrics.keys() <= kept.keys():
            return {name: kept[name] for name in self._metrics}
        record = self._store.record(case_id, launch)
        if record is None:
            return {}
        samples = self._store.frame(record)
        computed = {name: metric(record, samples) for name, metric in self._metrics.items()}
        found = {name: None if value is None else float(value) for name, value in computed.items()}
        if key[2]:
            self._known[key] = self._new[key] = json.dumps(kept | found)
        return found

    def keep(self) -> None:
        """Write down what is new; put pieces together where they are many."""
        together = len(self._pieces) >= MANY
        if (
            (self._new or together)
            and self._add(self._known if together else self._new)
            and together
            and self._segments
        ):
            self._segments.remove(self._pieces)
        self._new = {}

    def _add(self, some: Mapping[tuple[str, str, str], str]) -> str:
        columns = [(*key, found) for key, found in some.items()]
        arrays = [pa.array(column, pa.string()) for column in zip(*columns, strict=True)]
        return self._segments.add({TABLE: pa.Table.from_arrays(arrays, schema=_SCHEMA)}) if self._segments else ""
