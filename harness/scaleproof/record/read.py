"""Reads records. A folder is a record if both files are readable and of this version, run.json names this folder, and
the samples have the digest that it names."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from scaleproof.core.record_schema import EARLIER_SCHEMA_VERSION, SAMPLES, Record
from scaleproof.record.missing_plugins import read_without_plugins
from scaleproof.record.write import RUN, SAMPLES_FILE
from scaleproof.spec.case import AnyCase
from scaleproof.spec.emulated import emulated, true_bytes, true_times

UNREADABLE = (OSError, ValueError, pa.ArrowException)
"""Errors of reading a folder that is no record; pydantic's ValidationError is a ValueError."""
EARLIER = "it is of version 0.1"
"""The problem of a record that `scaleproof results migrate` converts."""


def read_form(folder: Path) -> Record:
    """The run.json of a launch's folder, even if its plugins are not installed here. UNREADABLE if it is of another
    version, or names another case or launch than its folder."""
    content = (folder / RUN).read_bytes()
    try:
        record = Record.model_validate_json(content)
    except ValidationError:
        if is_earlier(content):
            raise ValueError(EARLIER) from None
        without_plugins = read_without_plugins(content)
        if without_plugins is None:
            raise
        record = without_plugins
    if (record.case_id, record.launch) != (folder.parent.name, folder.name):
        raise ValueError("it says another case or launch than its folder")
    return record


def is_earlier(content: bytes) -> bool:
    """Whether a run.json was written by version 0.1."""
    try:
        form = json.loads(content)
    except ValueError:
        return False
    return isinstance(form, dict) and form.get("schema_version") == EARLIER_SCHEMA_VERSION


def read_content(folder: Path, record: Record) -> bytes:
    """The bytes of samples.parquet; UNREADABLE if their SHA-256 differs from the one in the record."""
    content = (folder / SAMPLES_FILE).read_bytes()
    expected = record.artifacts.get(SAMPLES_FILE)
    if expected is not None and hashlib.sha256(content).hexdigest() != expected:
        raise ValueError(f"{SAMPLES_FILE} was changed: its SHA-256 is not the one that {RUN} has")
    return content


def read_samples(record: Record, content: bytes) -> pa.Table:
    """All samples in the form of the schema, in emulated times and bytes. Only this function undoes the dilation and
    shrink of the case; the file has the times of the launch's own clock."""
    table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    table = table if table.schema.equals(SAMPLES) else table.cast(SAMPLES)
    return as_emulated(record.case, table) if emulated(record.case) else table


def as_emulated(case: AnyCase, table: pa.Table) -> pa.Table:
    """Samples in emulated time: times divided by the dilation, bytes multiplied by the shrink."""
    for name, undo in (("start_ns", true_times), ("end_ns", true_times), ("nbytes", true_bytes)):
        index = table.schema.get_field_index(name)
        values = pa.array(undo(case, table.column(name).to_numpy()))
        table = table.set_column(index, table.schema.field(index), values)
    return table


def ignored(folder: Path, why: str) -> str:
    """The warning about a folder that is no record; all records of version 0.1 share one warning."""
    if why == EARLIER:
        results = folder.parents[2]
        return f"{results}: records of version 0.1 are ignored; `scaleproof results migrate {results}` converts them"
    return f"{folder} is not a record of this version and is ignored: {why}"


def reason(error: Exception) -> str:
    """The message of an UNREADABLE error in one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{RUN}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}".replace(": :", ":")
    if isinstance(error, OSError) and error.filename:
        return f"{Path(error.filename).name}: {error.strerror}"
    return str(error).splitlines()[0]
