"""Peak memory of a call, beyond the memory that the process held before: on a CPU by the kernel's high-water mark of
resident memory, on a GPU by torch's counter."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Self

CLEAR, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
RESET_PEAK = "5"
"""Value that resets the high-water mark to the current resident memory (proc(5))."""
M_MMAP_THRESHOLD, THRESHOLD = -3, 1 << 16
"""Allocations of this size or more are mapped separately and returned when freed. Setting the threshold also stops it
from growing by itself (mallopt(3))."""


class Workspace:
    """A `with` block whose growth is measured; `nbytes` afterwards."""

    def __init__(self, torch: Any, device: str) -> None:
        self.cuda = torch.cuda if device == "cuda" else None
        self.how = "torch.cuda.max_memory_allocated" if self.cuda else "VmHWM, reset before every call"
        self.nbytes = 0
        if self.cuda is None:
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, THRESHOLD)

    def __enter__(self) -> Self:
        self.synchronise()
        if self.cuda:
            self.cuda.reset_peak_memory_stats()
            self._before = int(self.cuda.memory_allocated())
        else:
            CLEAR.write_text(RESET_PEAK)
            self._before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        peak = int(self.cuda.max_memory_allocated()) if self.cuda else _status("VmHWM")
        self.nbytes = max(peak - self._before, 0)

    def synchronise(self) -> None:
        """A GPU's calls return before they are done."""
        if self.cuda:
            self.cuda.synchronize()


def _status(field: str) -> int:
    """Bytes of a line of /proc/self/status, which has kB."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024
