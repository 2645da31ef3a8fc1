"""The append-only store of launches: results/runs/<case>/<launch>/."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.core.record_schema import Record
from scaleproof.record.index import Index
from scaleproof.record.missing_plugins import missing_plugins, warning
from scaleproof.record.read import (
    EARLIER,
    UNREADABLE,
    as_emulated,
    ignored,
    is_earlier,
    read_content,
    read_form,
    read_samples,
    reason,
)
from scaleproof.record.rows import Row, of_record
from scaleproof.record.write import RUN, write_record
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Store", "as_emulated"]


class Store:
    """Records of one results folder. A folder that is no complete record is ignored and not removed; `warn` is called
    with a line about it.

    `index`: read many launches from the folder's index (record/index.py) instead of from their files. It is brought up
    to date once, at its first use."""

    def __init__(self, results: Path, warn: Callable[[str], None] | None = None, index: Index | None = None) -> None:
        self.results = results
        self.runs = results / "runs"
        self.staging = results / "staging"
        self.warnings: list[str] = []
        self._warn = warn
        self.index = index
        self._records: dict[Path, Record | None] = {}

    def find(self, case_id: str, plan_index: int, machine: str, counts: Callable[[Record], bool]) -> Record | None:
        """The finished record (status ok) of a planned launch for which `counts` is true; None if there is none."""
        for record in self.records(case_id):
            same = record.plan_index == plan_index and record.machine == machine
            if record.status == "ok" and same and counts(record):
                return record
        return None

    def records(self, case_id: str | None = None) -> Iterator[Record]:
        """Every readable record, of one case or of all, oldest first within a case."""
        if case_id is not None:
            cases = [self.runs / case_id]
        else:
            cases = sorted(self.runs.iterdir()) if self.runs.exists() else []
        for folder in cases:
            records = [self._read(path) for path in (sorted(folder.iterdir()) if folder.is_dir() else [])]
            readable = [record for record in records if record is not None]
            yield from sorted(readable, key=lambda record: record.started_at)

    def check_version(self) -> None:
        """Warn if the first record is of version 0.1. Reading by case id would not show it, since case ids changed."""
        run = next(self.runs.glob(f"*/*/{RUN}"), None)
        if run is not None and is_earlier(run.read_bytes()):
            self._add_warning(ignored(run.parent, EARLIER))

    def rows(self, case_id: str) -> list[Row]:
        """The records of a case as flat rows (record/rows.py), oldest first."""
        if self.index is None:
            return [of_record(record) for record in self.records(case_id)]
        rows = self.index.rows(case_id)
        for row in rows[:1]:  # all rows of a case name the same plugins
            self._warn_of_plugins(row)
        for (damaged_case, launch), problem in self.index.problems.items():
            if damaged_case == case_id or problem == EARLIER:  # version 0.1 had other case ids
                self._read(self.runs / damaged_case / launch)  # adds the warning
        return rows

    def record(self, case_id: str, launch: str) -> Record | None:
        """One record; None if it is missing or incomplete. It is not cached, so that reading thousands of records takes
        the memory of one."""
        folder = self.runs / case_id / launch
        if folder not in self._records and folder.is_dir():
            record = self._parse(folder)
            if record is not None:
                return record
            self._records[folder] = None  # one warning is enough
        return self._records.get(folder)

    def stamp(self, case_id: str, launch: str) -> str:
        """A text that changes when one of the record's files changes; empty without an index."""
        return self.index.stamps.get((case_id, launch), "") if self.index else ""

    def load(self, launch: str) -> tuple[Record, Path]:
        """Record and folder of a launch id, or of the beginning of exactly one; SpecError otherwise."""
        matches = sorted(self.runs.glob(f"*/{launch}*")) if launch.isalnum() else []
        if not matches:
            raise SpecError(f"no launch {launch!r} in {self.runs}")
        if len(matches) > 1:
            raise SpecError(f"{launch!r} is the beginning of {len(matches)} launches")
        record = self._read(matches[0])
        if record is None:
            raise SpecError(self.warnings[-1])
        return record, matches[0]

    def folder(self, record: Record) -> Path:
        """The folder of a record."""
        return self.runs / record.case_id / record.launch

    def samples(self, record: Record) -> pa.Table:
        """All samples of a record in the form of the schema, in emulated times and bytes (record/read.py)."""
        indexed = self.index.samples_of((record.case_id, record.launch)) if self.index else None
        return read_samples(record, read_content(self.folder(record), record)) if indexed is None else indexed

    def frame(self, record: Record) -> pd.DataFrame:
        """`samples` as a frame of pandas."""
        indexed = self.index.frame_of((record.case_id, record.launch)) if self.index else None
        return self.samples(record).to_pandas() if indexed is None else indexed

    def array(self, record: Record, name: str) -> np.ndarray | None:
        """An array among a record's files; None if it has none."""
        path = self.folder(record) / name
        if name not in record.artifacts or not path.exists():
            return None
        values: np.ndarray = np.load(path, allow_pickle=False)
        return values

    def commit(self, staging_folder: Path, record: Record, samples: pa.Table) -> Path:
        """Write the record of a launch by one rename and remove its staging folder. OSError if the disk is full; then
        there is no record."""
        logs = sorted(staging_folder.glob("*.log"))
        artifacts = [staging_folder / name for name in record.artifacts]
        target = self.runs / record.case_id / record.launch
        try:
            write_record(staging_folder / "record", target, record, samples, [*logs, *artifacts])
            return target
        finally:
            shutil.rmtree(staging_folder, ignore_errors=True)

    def _read(self, folder: Path) -> Record | None:
        if folder not in self._records:
            self._records[folder] = self._parse(folder)
        return self._records[folder]

    def _parse(self, folder: Path) -> Record | None:
        key = (folder.parent.name, folder.name)
        try:
            if self.index and key in self.index.problems:
                raise ValueError(self.index.problems[key])
            record = read_form(folder)
            if self.index is None or key not in self.index.stamps:
                pq.read_metadata(pa.BufferReader(read_content(folder, record)))
        except UNREADABLE as error:
            self._add_warning(ignored(folder, reason(error)))
            return None
        self._warn_of_plugins(dict(record.case.named()))
        return record

    def _warn_of_plugins(self, names: Mapping[str, Any]) -> None:
        for kind, name in missing_plugins(names):
            self._add_warning(warning(kind, name))

    def _add_warning(self, text: str) -> None:
        """Each warning once."""
        if text in self.warnings:
            return
        self.warnings.append(text)
        if self._warn is not None:
            self._warn(text)
