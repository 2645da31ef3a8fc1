"""All launches of a results folder as one table, and all their samples as another. The index holds nothing that the
records do not hold: it can be made again from them at any time.

A row describes the folder of a launch at the time it was read. Its stamp is the size and times of both files; a folder
whose stamp has changed is read again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from scaleproof.core.record_schema import SAMPLES
from scaleproof.record.digest import rooms_digest
from scaleproof.record.host import usable_cores
from scaleproof.record.index_database import IndexDatabase, Unusable
from scaleproof.record.missing_plugins import missing_plugins
from scaleproof.record.parallel import in_parallel
from scaleproof.record.read import UNREADABLE, read_content, read_form, read_samples, reason
from scaleproof.record.rows import OF_CASE, OF_CASE_TEXT, OF_RECORD, Row, of_record
from scaleproof.record.write import RUN, SAMPLES_FILE
from scaleproof.spec.choice import CHOSEN
from scaleproof.spec.plugins import Kind

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str]
"""Case and launch: the two folders of a record."""
WINDOW_ROWS, WINDOWS = 1 << 17, 32
"""Samples that are fetched at a time, and number of fetches that stay in memory (180 MB as frames), since plans read
launches in any order."""
BATCH = 2000
"""Launches that a core reads before they are written: an interruption loses at most these. If there are more, all cores
read."""
_LAUNCHES = pa.schema(
    [
        ("folder", pa.string()),
        ("stamp", pa.string()),
        ("problem", pa.string()),
        ("samples", pa.int64()),
        *OF_RECORD.items(),
        *OF_CASE.items(),
    ]
)
"""`folder`: <case>/<launch>; `problem`: why the folder is no record, null for a record; `samples`: their number."""
_EVENT = SAMPLES.get_field_index("event")
_SAMPLES = SAMPLES.set(_EVENT, SAMPLES.field(_EVENT).with_type(pa.string()))
_SAMPLE_COLUMNS = ", ".join(SAMPLES.names)
TABLES_SQL = {
    "launches": "SELECT * EXCLUDE (number, folder, stamp, problem) FROM {file}.launches "
    "WHERE problem IS NULL ORDER BY folder",
    "samples": f"SELECT launch, {_SAMPLE_COLUMNS} FROM {{file}}.samples "
    "JOIN (SELECT number, launch FROM {file}.launches WHERE problem IS NULL) USING (number)",
}


class Index:
    """The index of one results folder, in its state at the first access."""

    def __init__(self, results: Path) -> None:
        self.runs = results / "runs"
        self.database = IndexDatabase(results, rooms_digest("core", "record", "spec"), _LAUNCHES, _SAMPLES)
        self._windows: list[_Window] = []

    @cached_property
    def stamps(self) -> dict[Key, str]:
        """The stamp of every launch's folder, by name. The first access brings the database up to date."""
        present = dict(_stamps(self.runs))
        if not present:
            self.database.use_temporary_file()  # nothing to keep
        try:
            self._catch_up(present)
        except Unusable:
            self.database.use_temporary_file()
            self._catch_up(present)
        return present

    @cached_property
    def problems(self) -> dict[Key, str]:
        """Why some folders are no records."""
        sql = "SELECT folder, problem FROM launches WHERE problem IS NOT NULL ORDER BY folder"
        return {_key(row["folder"]): row["problem"] for row in self._table(sql).to_pylist()}

    @cached_property
    def missing_plugins(self) -> list[tuple[Kind, str]]:
        """Kind and name of plugins that records name and that are not installed here."""
        kinds = ", ".join(kind for kind in OF_CASE_TEXT if kind in (*CHOSEN, "dataset"))
        rows = self._table(f"SELECT DISTINCT {kinds} FROM launches WHERE problem IS NULL").to_pylist()
        return sorted({missing for row in rows for missing in missing_plugins(row)})

    @cached_property
    def launches(self) -> pa.Table:
        """A row per record, in the order of `stamps`: the columns of record/rows.py, and how many `samples` it has."""
        return self._table(TABLES_SQL["launches"].format(file="main"))

    @cached_property
    def samples(self) -> pa.Table:
        """All samples of all records, in emulated time, each with the id of its launch."""
        return self._table(TABLES_SQL["samples"].format(file="main"))

    @contextmanager
    def attached(self, connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, str]]:
        """Attach the index to another database and yield the SQL of `launches` and `samples` in it. The index is locked
        against writers until the context ends."""
        self.stamps  # noqa: B018  brings the database up to date
        with self.database.attached(connection, "index_file"):
            yield {name: sql.format(file="index_file") for name, sql in TABLES_SQL.items()}

    def rows(self, case_id: str) -> list[Row]:
        """The rows of `launches` of one case, oldest first."""
        first, last = self._of_case.get(case_id, (0, 0))
        return sorted(self.launches.slice(first, last - first).to_pylist(), key=lambda row: str(row["started_at"]))

    def samples_of(self, key: Key) -> pa.Table | None:
        """The samples of one record in the form of the schema; None if the index does not have them."""
        position = self._positions.get(key)
        if position is None or not self._fetch(position.window):
            return None
        return position.window.table.slice(position.first, position.count)

    def frame_of(self, key: Key) -> pd.DataFrame | None:
        """`samples_of` as a frame of pandas."""
        position = self._positions.get(key)
        if position is None or not self._fetch(position.window):
            return None
        return position.window.frame.iloc[position.first : position.first + position.count].reset_index(drop=True)

    @cached_property
    def _of_case(self) -> dict[str, tuple[int, int]]:
        """First row and row after the last of a case in `launches`, where the rows of a case are neighbours."""
        rows: dict[str, tuple[int, int]] = {}
        for row, case_id in enumerate(self.launches["case"].to_pylist()):
            rows[case_id] = rows.get(case_id, (row, row))[0], row + 1
        return rows

    @cached_property
    def _positions(self) -> dict[Key, _Position]:
        """Where the samples of each record are."""
        positions: dict[Key, _Position] = {}
        window: _Window | None = None
        sql = "SELECT folder, number, samples FROM launches WHERE problem IS NULL ORDER BY number"
        for row in self._table(sql).to_pylist():
            if window is None or window.count >= WINDOW_ROWS:
                window = _Window(row["number"])
            positions[_key(row["folder"])] = _Position(window, window.count, row["samples"])
            window.last_number, window.count = row["number"], window.count + row["samples"]
        return positions

    def _fetch(self, window: _Window) -> bool:
        """Load the samples of a window; False if another process has changed the database and removed them."""
        if window in self._windows:
            return True
        numbers = f"number BETWEEN {window.first_number} AND {window.last_number}"
        try:
            table = self.database.table(f"SELECT {_SAMPLE_COLUMNS} FROM samples WHERE {numbers} ORDER BY number, rowid")
        except Unusable:
            return False
        if len(table) != window.count:
            return False
        event = table["event"].combine_chunks().dictionary_encode().cast(SAMPLES.field(_EVENT).type)
        window.table = table.set_column(_EVENT, SAMPLES.field(_EVENT), event)
        self._windows.append(window)
        if len(self._windows) > WINDOWS:
            self._windows.pop(0).forget()
        return True

    def _catch_up(self, present: Mapping[Key, str]) -> None:
        """Read the folders whose stamp is new and remove rows of deleted folders; Unusable if the database cannot be
        written."""
        indexed = self.database.stamps()
        changed = [key for key, stamp in present.items() if indexed.get("/".join(key)) != stamp]
        changed.sort(key=lambda key: present[key].split()[1])  # as written: what is read together lies together
        gone = sorted(indexed.keys() - {"/".join(key) for key in present})
        cores = max(int(usable_cores()), 1)
        if gone or not present:
            self._update(gone, {}, cores)
        for start in range(0, len(changed), cores * BATCH):
            keys = changed[start : start + cores * BATCH]
            self._update(["/".join(key) for key in keys], {key: present[key] for key in keys}, cores)

    def _update(self, replaced: Sequence[str], stamps: Mapping[Key, str], cores: int) -> None:
        """Replace the rows of some folders by new ones, read by several processes if there are many."""
        shares = in_parallel(partial(_read, self.runs), list(stamps), cores if len(stamps) > BATCH else 1)
        rows = [row | {"stamp": stamps[_key(row["folder"])]} for share in shares for row in share.rows]
        counts = [row["samples"] for row in rows]
        samples = pa.concat_tables([_SAMPLES.empty_table(), *(share.samples for share in shares)])
        launches = pa.Table.from_pylist(rows, schema=_LAUNCHES)
        self.database.replace(replaced, launches, samples, counts)

    def _table(self, sql: str) -> pa.Table:
        self.stamps  # noqa: B018  brings the database up to date
        try:
            return self.database.table(sql)
        except duckdb.Error:  # a damaged file: its blocks are checked when they are read
            self.database.remove()
            del self.stamps
            self.stamps  # noqa: B018
            return self.database.table(sql)


class _Window:
    """Samples of launches with neighbouring numbers, fetched together."""

    def __init__(self, first_number: int) -> None:
        self.first_number, self.last_number, self.count = first_number, first_number, 0
        self.table = SAMPLES.empty_table()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The samples as a frame of pandas."""
        return self.table.to_pandas()

    def forget(self) -> None:
        """Free the memory of the samples."""
        self.table = SAMPLES.empty_table()
        self.__dict__.pop("frame", None)


@dataclass(frozen=True, slots=True)
class _Position:
    """First row and number of rows of a launch's samples in a window."""

    window: _Window
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class _Share:
    """Rows of some folders, and the samples of all of them in the same order."""

    rows: list[dict[str, Any]]
    samples: pa.Table


def _read(runs: Path, keys: Sequence[Key]) -> _Share:
    rows, samples = [], [SAMPLES.empty_table()]
    for case_id, launch in keys:
        folder = runs / case_id / launch
        row: dict[str, Any] = {"folder": f"{case_id}/{launch}", "samples": 0}
        try:
            record = read_form(folder)
            table = read_samples(record, read_content(folder, record))
            row |= of_record(record) | {"samples": len(table)}
            samples.append(table)
        except UNREADABLE as error:
            row["problem"] = reason(error)
        rows.append(row)
    table = pa.concat_tables(samples)
    return _Share(rows, table.set_column(_EVENT, "event", table["event"].cast(pa.string())).combine_chunks())


def _key(folder: str) -> Key:
    case_id, _, launch = folder.partition("/")
    return case_id, launch


def _stamps(runs: Path) -> Iterator[tuple[Key, str]]:
    """The stamp of every launch's folder: size, modification time and change time of both files."""
    for case_id in sorted(os.listdir(runs)) if runs.is_dir() else []:
        folder = os.path.join(runs, case_id)
        for launch in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, launch)
            if os.path.isdir(path):
                yield (case_id, launch), ", ".join(_stamp(os.path.join(path, name)) for name in (RUN, SAMPLES_FILE))


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "none"
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
