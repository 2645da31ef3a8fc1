"""What counts as a record: read whole, of this version, in its own folder, with the samples that it was written with."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from scaleproof.core.record_schema import SAMPLES, Record
from scaleproof.record.write import RUN, SAMPLES_FILE
from scaleproof.spec.case import AnyCase
from scaleproof.spec.emulated import emulated, true_bytes, true_times

UNREADABLE = (OSError, ValueError, pa.ArrowException)
"""What reading a folder raises that is no whole record; pydantic's ValidationError is a ValueError."""


def read_form(folder: Path) -> Record:
    """run.json of a launch's folder; UNREADABLE where it is none of this version, or says another case or launch than
    its folder."""
    record = Record.model_validate_json((folder / RUN).read_bytes())
    if (record.case_id, record.launch) != (folder.parent.name, folder.name):
        raise ValueError("it says another case or launch than its folder")
    return record


def read_content(folder: Path, record: Record) -> bytes:
    """samples.parquet, byte for byte what the record says; UNREADABLE otherwise."""
    content = (folder / SAMPLES_FILE).read_bytes()
    wanted = record.artifacts.get(SAMPLES_FILE)
    if wanted is not None and hashlib.sha256(content).hexdigest() != wanted:
        raise ValueError(f"{SAMPLES_FILE} was changed: its SHA-256 is not the one that {RUN} has")
    return content


def read_samples(record: Record, content: bytes) -> pa.Table:
    """All samples in the schema's form, in the time and the bytes that the launch emulates: here, and nowhere else,
    what dilation and shrink of its case did is taken back. The file keeps what the launch's own clock said."""
    table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    table = table if table.schema.equals(SAMPLES) else table.cast(SAMPLES)
    return as_emulated(record.case, table) if emulated(record.case) else table


def as_emulated(case: AnyCase, table: pa.Table) -> pa.Table:
    """Samples in emulated time: moments over the dilation, bytes times the shrink."""
    for columns, taken_back in ((("start_ns", "end_ns"), true_times), (("nbytes",), true_bytes)):
        for name in columns:
            place = table.schema.get_field_index(name)
            table = table.set_column(
                place, table.schema.field(place), pa.array(taken_back(case, table.column(name).to_numpy()))
            )
    return table


def ignored(folder: Path, why: str) -> str:
    """One line on a folder that is no record."""
    return f"{folder} is not a record of this version and is ignored: {why}"


def reason(error: Exception) -> str:
    """What one of UNREADABLE says, in one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{RUN}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}".replace(": :", ":")
    if isinstance(error, OSError) and error.filename:
        return f"{Path(error.filename).name}: {error.strerror}"
    return str(error).splitlines()[0]
