"""All launches of a results folder as one table and all their samples as another, kept up to date: never a second
truth, always made from records.

A row stands for a launch's folder as it was when it was read; size and times of both files are its stamp. Another
stamp, and the folder is read again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from scaleproof.core.record_schema import SAMPLES
from scaleproof.record.digest import rooms_digest
from scaleproof.record.host import usable_cores
from scaleproof.record.read import UNREADABLE, read_content, read_form, read_samples, reason
from scaleproof.record.rows import OF_CASE, OF_RECORD, Row, of_record
from scaleproof.record.segments import Segments
from scaleproof.record.side_by_side import side_by_side
from scaleproof.record.write import RUN, SAMPLES_FILE

if TYPE_CHECKING:
    import pandas as pd

LAUNCHES, ROWS = "launches", "samples"
"""Tables of a piece."""
WINDOW, WINDOWS = 1 << 17, 32
"""Rows that become one frame, and frames that are kept (180 MB): making one takes half a millisecond and more, and
plans ask for launches in any order."""
MANY = 8
"""Pieces from which on they are put together."""
TURN = 2000
"""Launches that a core reads before a piece is written: what an interruption loses at most. More of them are read by
all cores."""
_PLACE: Mapping[str, pa.DataType] = {
    "folder": pa.string(),
    "stamp": pa.string(),
    "problem": pa.string(),
    "samples": pa.int64(),
    "first": pa.int64(),
}
"""`folder`: <case>/<launch>; `problem`: why it is no record, null where it is one; `samples`, `first`: how many, and
from which row of the piece."""
_SCHEMA = pa.schema([*_PLACE.items(), *OF_RECORD.items(), *OF_CASE.items()])
Key = tuple[str, str]
"""Case and launch: the two folders of a record."""
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Entry:
    """One launch's folder as it was read."""

    stamp: str
    problem: str | None
    tables: Tables
    row: int
    first: int
    count: int

    @property
    def place(self) -> tuple[int, int]:
        """Sorts entries of one piece by the place of their samples."""
        return id(self.tables), self.first

    @property
    def samples(self) -> pa.Table:
        """As Store.samples gives them; nothing is copied."""
        return self.tables[ROWS].slice(self.first, self.count)


class Index:
    """Of one results folder, as it is when something is first asked."""

    def __init__(self, results: Path) -> None:
        self.runs = results / "runs"
        self._segments = Segments(results, LAUNCHES, rooms_digest("record", "spec"))
        self._frames: dict[tuple[int, int], pd.DataFrame] = {}

    @cached_property
    def entries(self) -> dict[Key, Entry]:
        """Every launch's folder, in the order of their names."""
        there = dict(_stamps(self.runs))
        kept, pieces, dead = self._kept(there)
        missing = [key for key in there if key not in kept]
        if len(missing) > TURN:
            side_by_side(missing, lambda share: self._add(share, there), int(usable_cores()))
            kept, pieces, dead = self._kept(there)
            missing = [key for key in there if key not in kept]
        for start in range(0, len(missing), TURN):
            read = self._read({key: there[key] for key in missing[start : start + TURN]})
            pieces += filter(None, [self._segments.add(read)])
            kept |= _entries_of(read)
        if len(pieces) > MANY or dead > len(kept):
            kept = self._put_together(kept, pieces)
        return {key: kept[key] for key in sorted(there)}

    def _kept(self, there: Mapping[Key, str]) -> tuple[dict[Key, Entry], list[str], int]:
        """What earlier times read of the folders as they are now; the pieces that has come from; how many of their rows
        count no more."""
        kept, pieces, dead = dict[Key, Entry](), list[str](), 0
        for name, tables in self._segments.read():
            pieces.append(name)
            found = {
                key: entry for key, entry in _entries_of(tables) if there.get(key) == entry.stamp and key not in kept
            }
            dead += len(tables.get(LAUNCHES, ())) - len(found)
            kept |= found
        return kept, pieces, dead

    def _add(self, share: Sequence[Key], there: Mapping[Key, str]) -> None:
        """Read them and write them down, as long as there is room for it."""
        for start in range(0, len(share), TURN):
            if not self._segments.add(self._read({key: there[key] for key in share[start : start + TURN]})):
                return

    @cached_property
    def damaged(self) -> dict[str, list[str]]:
        """Launches whose folder is no record, by case."""
        found: dict[str, list[str]] = {}
        for (case_id, launch), entry in self.entries.items():
            if entry.problem is not None:
                found.setdefault(case_id, []).append(launch)
        return found

    @cached_property
    def launches(self) -> pa.Table:
        """A row per record, in the order of `entries`: the columns of record/rows.py, and how many `samples` it has."""
        found = [(entry.tables[LAUNCHES], entry.row) for entry in self.entries.values() if entry.problem is None]
        return _rows_of(found).drop_columns(["folder", "stamp", "problem", "first"])

    @cached_property
    def samples(self) -> pa.Table:
        """All samples of all records, in emulated time, each with the id of its launch."""
        good = sorted(
            ((launch, entry) for (_, launch), entry in self.entries.items() if entry.problem is None),
            key=lambda one: one[1].place,
        )
        parts: list[list[Any]] = []
        for _, entry in good:
            if parts and parts[-1][0] is entry.tables and parts[-1][2] == entry.first:
                parts[-1][2] += entry.count
            else:
                parts.append([entry.tables, entry.first, entry.first + entry.count])
        rows = pa.concat_tables(
            [_empty(SAMPLES), *(tables[ROWS].slice(first, last - first) for tables, first, last in parts)]
        ).unify_dictionaries()
        numbers = np.repeat(np.arange(len(good), dtype=np.int32), [entry.count for _, entry in good])
        return rows.add_column(
            0,
            "launch",
            pa.DictionaryArray.from_arrays(_numbers(numbers, pa.int32()), _strings([launch for launch, _ in good])),
        )

    def rows(self, case_id: str) -> list[Row]:
        """The rows of `launches` of one case, oldest first."""
        first, last = self._of_case.get(case_id, (0, 0))
        return sorted(self.launches.slice(first, last - first).to_pylist(), key=lambda row: str(row["started_at"]))

    @cached_property
    def _of_case(self) -> dict[str, tuple[int, int]]:
        """Where a case begins and ends in `launches`, where cases stand together."""
        found: dict[str, tuple[int, int]] = {}
        for place, case_id in enumerate(self.launches["case"].to_pylist()):
            found[case_id] = found.get(case_id, (place, place))[0], place + 1
        return found

    def frame(self, entry: Entry) -> pd.DataFrame:
        """Its samples as a frame of pandas, a part of one that holds its neighbours too."""
        first, last = entry.first // WINDOW * WINDOW, entry.first + entry.count
        key = (id(entry.tables), first)
        if key not in self._frames or first + len(self._frames[key]) < last:
            self._frames[key] = entry.tables[ROWS].slice(first, max(WINDOW, last - first)).to_pandas()
            if len(self._frames) > WINDOWS:
                del self._frames[next(iter(self._frames))]
        return self._frames[key].iloc[entry.first - first : last - first].reset_index(drop=True)

    def _read(self, stamps: Mapping[Key, str]) -> Tables:
        rows, samples, first = [], [], 0
        for (case_id, launch), stamp in stamps.items():
            folder = self.runs / case_id / launch
            row: dict[str, Any] = {"folder": f"{case_id}/{launch}", "stamp": stamp, "samples": 0, "first": first}
            try:
                record = read_form(folder)
                table = read_samples(record, read_content(folder, record))
                row |= of_record(record) | {"samples": len(table)}
                samples.append(table)
                first += len(table)
            except UNREADABLE as error:
                row["problem"] = reason(error)
            rows.append(row)
        return _tables(pa.Table.from_pylist(rows, schema=_SCHEMA), samples)

    def _put_together(self, kept: dict[Key, Entry], pieces: list[str]) -> dict[Key, Entry]:
        rows = _rows_of([(entry.tables[LAUNCHES], entry.row) for entry in kept.values()])
        counts = [entry.count for entry in kept.values()]
        first = pa.array(np.cumsum([0, *counts])[:-1], pa.int64())
        rows = rows.set_column(rows.schema.get_field_index("first"), "first", first)
        tables = _tables(rows, [entry.samples for entry in kept.values()])
        if self._segments.add(tables):
            self._segments.remove(pieces)
        return dict(_entries_of(tables))


def _tables(rows: pa.Table, samples: Iterable[pa.Table]) -> Tables:
    """One chunk a column, else every slice would walk through all of them."""
    together = pa.concat_tables([SAMPLES.empty_table(), *samples]).unify_dictionaries().combine_chunks()
    return {LAUNCHES: rows.combine_chunks(), ROWS: together}


def _entries_of(tables: Tables) -> Iterator[tuple[Key, Entry]]:
    if tables.keys() != {LAUNCHES, ROWS}:
        return
    places = tables[LAUNCHES].select(list(_PLACE)).to_pylist()
    for row, place in enumerate(places):
        case_id, _, launch = place["folder"].partition("/")
        yield (case_id, launch), Entry(place["stamp"], place["problem"], tables, row, place["first"], place["samples"])


def _rows_of(found: list[tuple[pa.Table, int]]) -> pa.Table:
    """These rows of these tables, in this order."""
    tables = list({id(table): table for table, _ in found}.values())
    starts = dict(zip(map(id, tables), np.cumsum([0, *map(len, tables)]).tolist(), strict=False))
    places = np.fromiter((starts[id(table)] + row for table, row in found), np.int64, len(found))
    return pa.concat_tables([_empty(_SCHEMA), *tables]).take(_numbers(places, pa.int64()))


def _empty(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([], schema)


def _numbers(values: np.ndarray, form: pa.DataType) -> pa.Array:
    """As pa.array, which loads pandas to ask whether it was given something of it, and that takes longer than most
    queries. So does a schema's empty table."""
    return pa.Array.from_buffers(form, len(values), [None, pa.py_buffer(values)])


def _strings(values: Sequence[str]) -> pa.Array:
    """In the same way; of ASCII."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer("".join(values).encode()))


def _stamps(runs: Path) -> Iterator[tuple[Key, str]]:
    """Size, time of writing and time of the last change of either file, for every launch's folder."""
    for case_id in sorted(os.listdir(runs)) if runs.is_dir() else []:
        folder = os.path.join(runs, case_id)
        for launch in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, launch)
            if os.path.isdir(path):
                yield (case_id, launch), ", ".join(_stamp(os.path.join(path, name)) for name in (RUN, SAMPLES_FILE))


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "none"
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
