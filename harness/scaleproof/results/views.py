"""A results folder as tables for SQL: launches, samples, claims, planned."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from scaleproof.record.index import Index
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.claims.claims_file import ClaimResult

TABLES = {
    "launches": (
        "a row per record: what ran, where, when, with which code, how it ended; tags, the whole case as JSON in "
        "`fields`"
    ),
    "samples": "a row per event of a rank, with the id of its launch; times and bytes as emulated (docs/events.md)",
    "claims": "a row per claim and level of evidence, as the last `scaleproof judge` wrote them",
    "planned": "a row per planned launch with the metrics of each, as the last `scaleproof collect` wrote them",
}
_RENAMED = {"case": "case_id", "order": "plan_order", "where": "place"}
"""Columns whose names are keywords of SQL, with their names in the tables."""
_CLAIM = (
    "id",
    "suite",
    "size",
    "kind",
    "origin",
    "experiment",
    "statement",
    "metric",
    "unit",
    "ours",
    "n",
    "evidence",
    "verdict",
    "rule",
    "reason",
    "provenance",
    "gate",
    "direction",
    "where",
    "source",
    "noise_floor",
)
_CLAIMS = pa.schema(
    [
        *(
            (
                name,
                {"ours": pa.float64(), "noise_floor": pa.float64(), "n": pa.int64(), "gate": pa.bool_()}.get(
                    name, pa.string()
                ),
            )
            for name in _CLAIM
        ),
        ("published", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("coverage", pa.float64()),
        ("runs", pa.list_(pa.string())),
        ("warnings", pa.list_(pa.string())),
        ("evidence_details", pa.list_(pa.string())),
        ("work_factor", pa.string()),
    ]
)


def views(
    results: Path, index: Index, names: Collection[str] = TABLES, chosen: pa.Table | None = None
) -> dict[str, pa.Table]:
    """The tables of these names. With `chosen`, rows of the index's launches: only those, their samples, and the
    verdicts and plans of their suites."""
    makers = {
        "launches": lambda: index.launches,
        "samples": lambda: index.samples,
        "claims": lambda: claims(results),
        "planned": lambda: planned(results),
    }
    tables = {name: makers[name]() for name in names}
    if chosen is not None:
        suites, launches = pc.unique(chosen["suite"]), chosen["launch"].combine_chunks()
        filters = {
            "launches": ("launch", launches),
            "samples": ("launch", launches),
            "claims": ("suite", suites),
            "planned": ("suite", suites),
        }
        tables = {name: _filtered(table, *filters[name]) for name, table in tables.items()}
    return {
        name: table.rename_columns([_RENAMED.get(column, column) for column in table.column_names])
        for name, table in tables.items()
    }


def _filtered(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table[column].cast(pa.string()), values))


def claims(results: Path) -> pa.Table:
    """All verdicts of a folder; SpecError for a file of another form."""
    return pa.Table.from_pylist(
        [_claim(claim) for path in sorted((results / "claims").glob("*.json")) for claim in _read(path)], schema=_CLAIMS
    )


def _read(path: Path) -> Sequence[ClaimResult]:
    from scaleproof.claims.claims_file import ClaimsFile  # slow to import, and most queries need no verdicts

    try:
        return ClaimsFile.model_validate_json(path.read_bytes()).claims
    except ValidationError:
        suite, size, _ = path.name.rsplit(".", 2)
        raise SpecError(
            f"{path}: not of this version; `scaleproof judge {suite} --size {size}` makes it again"
        ) from None


def _claim(claim: ClaimResult) -> dict[str, Any]:
    row = {name: getattr(claim, name) for name in _CLAIM}
    interval = claim.interval
    row |= {"low": interval.low, "high": interval.high, "coverage": interval.coverage} if interval else {}
    return row | {
        "published": None if claim.published is None else json.dumps(claim.published),
        "runs": list(claim.runs),
        "warnings": list(claim.warnings),
        "evidence_details": list(claim.evidence_details),
        "work_factor": claim.work_factor or None,
    }


def planned(results: Path) -> pa.Table:
    """All run tables of a folder; a metric that only some suites have is null elsewhere."""
    tables = [pq.ParquetFile(path).read() for path in sorted((results / "tables").glob("*.parquet"))]
    return (
        pa.concat_tables(tables, promote_options="default")
        if tables
        else pa.table({"suite": pa.array([], pa.string())})
    )


def query(results: Path, index: Index, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of one statement; SpecError with DuckDB's message, which names the nearest column."""
    used = {name for name in TABLES if re.search(rf"\b{name}\b", sql, re.IGNORECASE)}
    with duckdb.connect() as database, index.attached(database) as indexed:
        database.execute("SET python_enable_replacements = false")
        for name in indexed.keys() & used:
            database.execute(f"CREATE VIEW {name} AS {_renamed(database, indexed[name])}")
        for name, table in views(results, index, used - indexed.keys()).items():
            database.register(name, table)
        try:
            result = database.sql(sql)
            return (list(result.columns), result.fetchall()) if result is not None else ([], [])
        except duckdb.Error as error:
            raise SpecError("query: " + " ".join(str(error).split())) from None


def _renamed(database: duckdb.DuckDBPyConnection, sql: str) -> str:
    columns = [f'"{name}" AS {_RENAMED.get(name, name)}' for name in database.sql(sql).columns]
    return f"SELECT {', '.join(columns)} FROM ({sql})"
