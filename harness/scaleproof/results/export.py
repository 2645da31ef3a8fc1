"""Writes results for other tools: as Parquet files, or as one DuckDB database."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.results.views import TABLES
from scaleproof.spec.errors import SpecError


def draft_path(path: Path) -> Path:
    """A temporary name beside `path`, whose folder is created. Nothing is overwritten: SpecError if `path` exists."""
    if path.exists():
        raise SpecError(f"{path}: exists already; give another name or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.draft")


def to_parquet(tables: Mapping[str, pa.Table], folder: Path) -> None:
    """Write one file per table into a new folder: all of them, or none."""
    draft = draft_path(folder)
    try:
        draft.mkdir()
        for name, table in tables.items():
            pq.write_table(table, draft / f"{name}.parquet", compression="zstd")
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def to_duckdb(tables: Mapping[str, pa.Table], path: Path) -> None:
    """Write one database with all tables; each has its description as a comment."""
    draft = draft_path(path)
    try:
        with duckdb.connect(str(draft)) as database:
            for name, table in tables.items():
                database.register("exported", table)
                database.execute(f"CREATE TABLE {name} AS SELECT * FROM exported")
                database.execute(f"COMMENT ON TABLE {name} IS '{TABLES[name]}'")
                database.unregister("exported")
        draft.rename(path)
    finally:
        for file in (draft, draft.with_name(f"{draft.name}.wal")):
            file.unlink(missing_ok=True)
