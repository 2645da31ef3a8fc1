"""CSV of a figure's numbers and of the run table, and links that contain a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

FIRST = (
    "suite",
    "experiment",
    "case",
    "launch",
    "transport",
    "strategy",
    "collective",
    "fabric",
    "ranks",
    "workload",
    "evidence",
    "status",
)
"""The first columns of every table of runs."""


def text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV with a header line; None becomes an empty cell."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return target.getvalue()


def data_uri(content: str) -> str:
    """The CSV as a link that needs no server, no other file and no JavaScript."""
    return "data:text/csv;charset=utf-8," + quote(
        content, safe="/:,"
    )  # commas stand for themselves: 3 bytes fewer each


def write_runs(path: Path, tables: Sequence[pa.Table], labels: Mapping[str, str]) -> None:
    """Write runs.csv, a row per planned launch: the columns FIRST, the label of its evidence from suite validation
    (`labels`, by launch id), and the other columns of the run tables."""
    table = pa.concat_tables(tables, promote_options="default") if tables else pa.table({name: [] for name in FIRST})
    standing = pa.array([labels.get(launch) for launch in table["launch"].to_pylist()], pa.string())
    table = table.add_column(table.column_names.index("evidence") + 1, "validation", standing)
    table = table.select([*FIRST, *(name for name in table.column_names if name not in FIRST)])
    path.write_text(text(table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True)))
