"""Memory of this process: its peak from a moment on, and a cap on what it may take."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import stack_size

MIB = 1 << 20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""What resets the peak of resident memory (proc(5))."""
M_MMAP_THRESHOLD = -3
"""Of mallopt(3): arrays from this size on get pages of their own, which go back at once when they are freed. Without it
the threshold rises with what was freed, and later arrays would hide in memory that the process still has."""
OWN_PAGES_FROM = MIB // 4
M_ARENA_MAX = -8
"""Of mallopt(3): with one arena no thread takes memory for its own, which a cap would count."""
STACK = MIB
"""Of a thread that is started under a cap, bytes; else 8 MiB, which the cap would count."""


class Peak:
    """The most memory since it was made. `held`: bytes that belong to it and were there already."""

    def __init__(self, held: int) -> None:
        CLEAR.write_text(RESET_PEAK)
        self._before = _status_mib("VmRSS") - held / MIB

    def mib(self) -> float:
        """Resident, MiB."""
        return _status_mib("VmHWM") - self._before


@dataclass
class Room:
    """Whether what was asked for under a cap was there."""

    fits: bool = True


@contextmanager
def capped(mib: int) -> Iterator[Room]:
    """From here on this process may take so much more memory of its own (RLIMIT_DATA, setrlimit(2)). Where what is done
    inside does not fit, the cap is lifted again. 0: no cap. A limit of address space (RLIMIT_AS) would count the 64 MiB
    that an earlier thread has reserved as taken, and then let arrays fill them."""
    library = ctypes.CDLL(None)
    library.mallopt(M_MMAP_THRESHOLD, OWN_PAGES_FROM)
    room, before = Room(), resource.getrlimit(resource.RLIMIT_DATA)
    if mib:
        library.mallopt(M_ARENA_MAX, 1)
        stack_size(STACK)
        most = int(_status_mib("VmData") + mib) * MIB
        resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield room
    except MemoryError:
        if not mib:
            raise
        room.fits = False
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _status_mib(name: str) -> float:
    line = next(each for each in STATUS.read_text().splitlines() if each.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024
