"""The study's values as one small Parquet file: a row per launch with its seconds and, for a few launches, the time of
each digest, so that both steps of the arithmetic can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tools.calibration_study import design

EVERY = 250
"""One launch in so many keeps its digests."""
SCHEMA = pa.schema(
    [
        pa.field("arm", pa.dictionary(pa.int8(), pa.string())),
        pa.field("block", pa.int32()),
        pa.field("seconds", pa.float64()),
        pa.field("digests_ns", pa.list_(pa.int64())),
    ]
)


def write(path: Path, arms: Mapping[str, list[float]], digests: Mapping[tuple[str, int], list[int]]) -> None:
    """`arms`: seconds by block; `digests`: durations in ns by arm and block."""
    rows = [
        {"arm": arm, "block": block, "seconds": seconds, "digests_ns": digests.get((arm, block))}
        for arm, values in arms.items()
        for block, seconds in enumerate(values)
    ]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, compression="zstd", compression_level=19)


def read(path: Path, launches: int) -> tuple[design.Values, dict[tuple[str, int], list[int]]]:
    """The values of a study with `launches` per arm, and the stored digests."""
    arms: dict[str, list[float]] = {}
    digests = {}
    for row in pq.read_table(path).to_pylist():
        arms.setdefault(row["arm"], []).append(row["seconds"])
        if row["digests_ns"] is not None:
            digests[row["arm"], row["block"]] = row["digests_ns"]
    return design.Values(launches, arms), digests
