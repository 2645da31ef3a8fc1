"""Hands results on to other tools: Parquet files, or one DuckDB database."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.results.views import TABLES
from scaleproof.spec.errors import SpecError


def free(path: Path) -> Path:
    """A path to write to; SpecError where something lies there, since nothing is written over."""
    if path.exists():
        raise SpecError(f"{path}: is there already; give another name or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.draft")


def to_parquet(tables: Mapping[str, pa.Table], folder: Path) -> None:
    """One file a table, in a new folder; all of them or nothing."""
    draft = free(folder)
    try:
        draft.mkdir()
        for name, table in tables.items():
            pq.write_table(table, draft / f"{name}.parquet", compression="zstd")
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def to_duckdb(tables: Mapping[str, pa.Table], path: Path) -> None:
    """One database file that holds everything; each table has its description as a comment."""
    draft = free(path)
    try:
        with duckdb.connect(str(draft)) as database:
            for name, table in tables.items():
                database.register("given", table)
                database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
                database.execute(f"COMMENT ON TABLE {name} IS '{TABLES[name]}'")
                database.unregister("given")
        draft.rename(path)
    finally:
        for left in (draft, draft.with_name(f"{draft.name}.wal")):
            left.unlink(missing_ok=True)
