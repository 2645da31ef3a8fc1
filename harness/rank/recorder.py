"""Events of one rank: rows in a file-backed array, so that a killed rank loses none, at about a microsecond each."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

now = time.monotonic_ns
"""The clock of all events: CLOCK_MONOTONIC, ns, one for all processes of a machine."""

EVENT_DTYPE = np.dtype([("event", "S24"), ("step", "<i4"), ("warmup", "?"), ("start_ns", "<i8"), ("end_ns", "<i8"), ("nbytes", "<i8"), ("value", "<f8")])
GROW = 65_536


class Recorder:
    """Appends events. The vocabulary of event names is in docs/events.md."""

    def __init__(self, path: Path, capacity: int = GROW) -> None:
        self.path = path
        self.warmup = False
        self._count = 0
        path.touch()
        self._rows = self._map(capacity)

    def add(self, event: str, step: int, start_ns: int, end_ns: int, nbytes: int = 0, value: float = float("nan")) -> None:
        """Record one interval, or a value when start equals end."""
        if self._count == len(self._rows):
            self._grow()
        self._rows[self._count] = (event, step, self.warmup, start_ns, end_ns, nbytes, value)
        self._count += 1

    @contextmanager
    def span(self, event: str, step: int, nbytes: int = 0) -> Iterator[None]:
        """Record the time of a block; a block that raises is not recorded."""
        start = now()
        yield
        self.add(event, step, start, now(), nbytes)

    def _grow(self) -> None:
        size = len(self._rows) + GROW
        self._rows.flush()
        self._rows = self._map(size)

    def _map(self, rows: int) -> np.memmap:
        """Space is taken now: on a full disk this raises ENOSPC, where a sparse file would end the rank by SIGBUS later."""
        with self.path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, rows * EVENT_DTYPE.itemsize)
        return np.memmap(self.path, dtype=EVENT_DTYPE, mode="r+", shape=(rows,))


def read_events(path: Path) -> np.ndarray:
    """Rows written so far (a row counts once its end_ns is set); empty when the file is missing."""
    if not path.exists() or path.stat().st_size == 0:
        return np.empty(0, EVENT_DTYPE)
    rows = np.fromfile(path, dtype=EVENT_DTYPE)
    return rows[rows["end_ns"] != 0]
