"""Events of one rank: rows in a file-backed array, so that a killed rank loses none. An event takes about a
microsecond."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import numpy as np

now = time.monotonic_ns
"""The clock of all events: CLOCK_MONOTONIC, ns, one for all processes of a machine."""

EVENT_DTYPE = np.dtype(
    [
        ("event", "S24"),
        ("step", "<i4"),
        ("warmup", "?"),
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("nbytes", "<i8"),
        ("value", "<f8"),
    ]
)
_ROW = struct.Struct("<24si?qqqd")
"""A row of EVENT_DTYPE: packing bytes takes a quarter of the time of assigning a tuple to a row."""
GROW = 65_536
PART = 4096
"""Rows that are read at once."""


class Span:
    """The block of `Recorder.span`; a class because a generator takes a microsecond more."""

    __slots__ = ("_event", "_nbytes", "_recorder", "_start", "_step")

    def __init__(self, recorder: Recorder, event: str, step: int, nbytes: int) -> None:
        self._recorder, self._event, self._step, self._nbytes = recorder, event, step, nbytes

    def __enter__(self) -> None:
        self._start = now()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._recorder.add(self._event, self._step, self._start, now(), self._nbytes)


class Recorder:
    """Appends events, to those of a rank that was killed too. The vocabulary of event names is in docs/events.md."""

    def __init__(self, path: Path, capacity: int = GROW) -> None:
        self.path = path
        self.warmup = False
        path.touch()
        written = path.stat().st_size // EVENT_DTYPE.itemsize
        self._rows = self._map(max(capacity, written))
        self._count = int(np.count_nonzero(self._rows["end_ns"])) if written else 0

    def add(
        self, event: str, step: int, start_ns: int, end_ns: int, nbytes: int = 0, value: float = float("nan")
    ) -> None:
        """Record one interval, or a value when start equals end."""
        if self._count == len(self._rows):
            self._grow()
        _ROW.pack_into(
            self._bytes, self._count * _ROW.size, event.encode(), step, self.warmup, start_ns, end_ns, nbytes, value
        )
        self._count += 1

    def span(self, event: str, step: int, nbytes: int = 0) -> Span:
        """Record the time of a `with` block; a block that raises is not recorded."""
        return Span(self, event, step, nbytes)

    def _grow(self) -> None:
        size = len(self._rows) + GROW
        self._rows.flush()
        self._rows = self._map(size)

    def _map(self, rows: int) -> np.memmap:
        """Map the file with its disk space allocated: on a full disk this raises ENOSPC now, where a sparse file would
        end the rank by SIGBUS later."""
        with self.path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, rows * EVENT_DTYPE.itemsize)
        mapped = np.memmap(self.path, dtype=EVENT_DTYPE, mode="r+", shape=(rows,))
        self._bytes = mapped.view(np.uint8).data
        return mapped


def read_events(path: Path) -> np.ndarray:
    """Rows written so far (a row counts once its end_ns is set); empty when the file is missing."""
    if not path.exists() or path.stat().st_size == 0:
        return np.empty(0, EVENT_DTYPE)
    parts = list[np.ndarray]()
    with path.open("rb") as file:
        # Rows are written in order, and most of the file is empty.
        while len(rows := np.fromfile(file, EVENT_DTYPE, PART)):
            parts.append(rows[rows["end_ns"] != 0])
            if not len(parts[-1]):
                break
    return np.concatenate(parts)
