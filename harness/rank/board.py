"""A page of memory per launch, one line per rank: beat, step, operation, peer. Ranks write it, the supervisor reads it, also after a rank is dead."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LINE = 128
_FORMAT = struct.Struct("<qqqi16s40s")
_PID = struct.Struct("<i")
_PID_AT = 120
State = Literal["starting", "running", "done"]


@dataclass(frozen=True, slots=True)
class Line:
    """One rank's last words: monotonic beat in ns, step (-1: before the first), peer (-1: none), state, operation."""

    beat_ns: int
    moved_ns: int
    step: int
    peer: int
    state: str
    operation: str


class Board:
    """Shared lines of all ranks, in a file that the supervisor made."""

    def __init__(self, path: Path, world_size: int) -> None:
        self.world_size = world_size
        if not path.exists():
            path.write_bytes(bytes(LINE * world_size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), LINE * world_size)

    def write(self, rank: int, *, step: int, operation: str, peer: int = -1, state: State = "running") -> None:
        """Say what this rank does now."""
        now = time.monotonic_ns()
        _FORMAT.pack_into(self._memory, rank * LINE, now, now, step, peer, state.encode(), operation.encode()[:40])

    def enrol(self, rank: int) -> None:
        """Say which process this rank is."""
        _PID.pack_into(self._memory, rank * LINE + _PID_AT, os.getpid())
        self.beat(rank)

    def pid(self, rank: int) -> int:
        """The process of a rank; 0 before it enrolled."""
        return int(_PID.unpack_from(self._memory, rank * LINE + _PID_AT)[0])

    def beat(self, rank: int) -> None:
        """Say that this rank's process still runs."""
        struct.pack_into("<q", self._memory, rank * LINE, time.monotonic_ns())

    def read(self, rank: int) -> Line:
        """A rank's line."""
        beat, moved, step, peer, state, operation = _FORMAT.unpack_from(self._memory, rank * LINE)
        return Line(beat, moved, step, peer, state.rstrip(b"\0").decode() or "starting", operation.rstrip(b"\0").decode())

    def close(self) -> None:
        """Unmap."""
        self._memory.close()
