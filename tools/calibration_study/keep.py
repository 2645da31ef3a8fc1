"""Thousands of records in one small archive: what differs from the first record as JSON lines, and all samples as one
table."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scaleproof.core.record_schema import SAMPLES, Record
from scaleproof.record.store import Store

FIRST, OTHERS, TABLE = "first.json", "differences.jsonl", "samples.parquet"
_GONE = "(not there)"
_DELTAS = ("launch", "step", "start_ns", "duration_ns", "nbytes")


def pack(records: Iterable[Record], store: Store, path: Path) -> None:
    """Write the archive. Nothing is lost: `unpack` gives the same records and samples."""
    first: dict[str, Any] | None = None
    lines, tables = [], []
    for number, record in enumerate(records):
        form = record.model_dump(mode="json")
        first = form if first is None else first
        lines.append(json.dumps(difference(first, form), separators=(",", ":")))
        rows = store.samples(record)
        rows = rows.append_column("launch", pa.array([number] * len(rows), pa.int32()))
        tables.append(
            rows.append_column("duration_ns", pc.subtract(rows["end_ns"], rows["start_ns"])).drop_columns(["end_ns"])
        )
    table = io.BytesIO()
    pq.write_table(
        pa.concat_tables(tables).unify_dictionaries(),
        table,
        compression="zstd",
        compression_level=19,
        use_dictionary=["event", "rank", "warmup", "value"],
        column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
    )
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name, content in (
            (FIRST, json.dumps(first).encode()),
            (OTHERS, "\n".join(lines).encode()),
            (TABLE, table.getvalue()),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def unpack(path: Path) -> Iterator[tuple[Record, pa.Table]]:
    """Every record with its samples, in the order of packing."""
    with tarfile.open(path) as archive:
        content = {
            member.name: found.read() for member in archive if (found := archive.extractfile(member)) is not None
        }
    table = pq.read_table(io.BytesIO(content[TABLE]))
    table = table.append_column("end_ns", pc.add(table["start_ns"], table["duration_ns"]))
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["launch"]).to_pylist()}
    first, start = json.loads(content[FIRST]), 0
    for number, line in enumerate(content[OTHERS].decode().splitlines()):
        rows = counts.get(number, 0)
        yield (
            Record.model_validate(merged(first, json.loads(line))),
            table.slice(start, rows).select(SAMPLES.names).cast(SAMPLES),
        )
        start += rows


def difference(base: Any, other: Any) -> Any:
    """What must be laid over `base` to get `other`: mappings by key, lists of equal length by place, anything else
    whole; empty when they are equal."""
    if isinstance(base, list) and isinstance(other, list) and len(base) == len(other):
        base, other = _numbered(base), _numbered(other)
    if not (isinstance(base, dict) and isinstance(other, dict)):
        return {} if base == other and type(base) is type(other) else {"=": other}
    keys = [*other, *(key for key in base if key not in other)]
    parts = {
        key: {"=": _GONE}
        if key not in other
        else {"=": other[key]}
        if key not in base
        else difference(base[key], other[key])
        for key in keys
    }
    return {key: part for key, part in parts.items() if part}


def merged(base: Any, over: Any) -> Any:
    """`base` with a difference laid over it."""
    if "=" in over:
        return over["="]
    if not over:
        return base
    if isinstance(base, list):
        return list(merged(_numbered(base), over).values())
    result = {**base, **{key: merged(base.get(key), part) for key, part in over.items()}}
    return {key: value for key, value in result.items() if value != _GONE}


def _numbered(values: list[Any]) -> dict[str, Any]:
    return {str(place): value for place, value in enumerate(values)}
