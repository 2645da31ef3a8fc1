"""Writes the record of a launch. Readers see either all of it or nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.core.record_schema import SAMPLES, Record

RUN = "run.json"
SAMPLES_FILE = "samples.parquet"


def samples_table(events: dict[int, np.ndarray]) -> pa.Table:
    """The events of all ranks as one table in the form of the schema, by rank."""
    parts = [_rank_table(rank, rows) for rank, rows in sorted(events.items()) if len(rows)]
    return pa.concat_tables(parts).unify_dictionaries() if parts else SAMPLES.empty_table()


def _rank_table(rank: int, rows: np.ndarray) -> pa.Table:
    names, codes = np.unique(rows["event"], return_inverse=True)
    events = pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int16()), pa.array([name.decode() for name in names], pa.string())
    )
    columns = {
        name: pa.array(np.ascontiguousarray(rows[name]))
        for name in ("step", "warmup", "start_ns", "end_ns", "nbytes", "value")
    }
    ranks = pa.array(np.full(len(rows), rank, np.int16))
    return pa.table([ranks, events, *columns.values()], names=["rank", "event", *columns]).cast(SAMPLES)


def write_record(draft: Path, target: Path, record: Record, samples: pa.Table, files: Iterable[Path]) -> None:
    """Fill `draft` (a new folder on the target's file system), flush it to disk, and rename it to `target`. `files`
    (logs, artifacts) are moved into it.

    Raises OSError (ENOSPC on a full disk); then `target` does not exist, and the caller must remove the draft."""
    draft.mkdir(parents=True)
    for path in files:
        shutil.move(path, draft / path.name)
    pq.write_table(samples, draft / SAMPLES_FILE, compression="zstd")
    record = record.model_copy(
        update={"artifacts": {name: _sha256(draft / name) for name in [SAMPLES_FILE, *record.artifacts]}}
    )
    Record.model_validate(record.model_dump())
    (draft / RUN).write_text(record.model_dump_json(indent=1) + "\n")
    for path in [*draft.iterdir(), draft]:
        _sync(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
