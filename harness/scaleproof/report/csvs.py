"""Machine copies: the numbers of a figure, the run table, and links that carry a file inside the page."""

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
"""Columns that every table of runs starts with."""


def text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV with a header line; nothing for None."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return target.getvalue()


def data_uri(content: str) -> str:
    """A link that works without a server, without a second file and without JavaScript."""
    return "data:text/csv;charset=utf-8," + quote(content)


def write_runs(path: Path, tables: Sequence[pa.Table], labels: Mapping[str, str]) -> None:
    """runs.csv: one row per planned launch, FIRST, what suite validation says of its evidence (`labels`, by launch),
    and then what the run tables hold."""
    table = pa.concat_tables(tables, promote_options="default") if tables else pa.table({name: [] for name in FIRST})
    standing = pa.array([labels.get(launch) for launch in table["launch"].to_pylist()], pa.string())
    table = table.add_column(table.column_names.index("evidence") + 1, "validation", standing)
    table = table.select([*FIRST, *(name for name in table.column_names if name not in FIRST)])
    path.write_text(text(table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True)))
