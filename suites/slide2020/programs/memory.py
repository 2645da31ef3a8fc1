"""Arrays in ordinary or in huge pages, and what the kernel and the processor count of them."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Allocate = Callable[[tuple[int, ...], Any], np.ndarray]
HUGE = 2 << 20
"""Bytes of a huge page on x86-64."""
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PERF_EVENT_OPEN = 298
"""Number of the system call on x86-64."""
HARDWARE_CACHE, DTLB_READ_MISS = 3, 3 | (0 << 8) | (1 << 16)
"""PERF_TYPE_HW_CACHE; misses of reads in the data TLB."""


def allocator(huge: bool) -> Allocate:
    """What makes arrays of zeros in anonymous memory: of huge pages where the kernel has them, or of 4 KiB alone."""
    advice = mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE

    def allocate(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        count = int(np.prod(shape))
        needed = count * np.dtype(dtype).itemsize
        length = -(-needed // HUGE) * HUGE + HUGE
        pages = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(advice)
        whole = np.frombuffer(pages, np.uint8)
        shift = -whole.ctypes.data % HUGE
        return whole[shift : shift + needed].view(dtype).reshape(shape)

    return allocate


def huge_pages_obstacle() -> tuple[str, str] | None:
    """Why a program gets no huge pages, and what to do."""
    setting = ENABLED.read_text() if ENABLED.exists() else "absent"
    if "[never]" in setting or setting == "absent":
        return f"the kernel has no transparent huge pages ({setting.strip()})", f"write madvise to {ENABLED} as root"
    return None


def huge_mib() -> float:
    """MiB of this process in huge pages."""
    rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) / 1024 for row in rows if row.startswith("AnonHugePages:"))


def page_faults() -> int:
    """Page faults of this process so far, minor and major."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


class DataTlbMisses:
    """Counts misses of reads in the data TLB, in the thread that made it and in all that it starts; `count()` is None
    where the processor or the kernel gives no counter."""

    def __init__(self) -> None:
        attributes = bytearray(128)
        struct.pack_into("IIQ", attributes, 0, HARDWARE_CACHE, 128, DTLB_READ_MISS)
        struct.pack_into("Q", attributes, 40, (1 << 1) | (1 << 5) | (1 << 6))  # inherit, no kernel, no hypervisor
        buffer = (ctypes.c_char * 128).from_buffer(attributes)
        self._file = ctypes.CDLL(None, use_errno=True).syscall(PERF_EVENT_OPEN, buffer, 0, -1, -1, 0)

    def count(self) -> int | None:
        """Misses so far."""
        return None if self._file < 0 else int.from_bytes(os.read(self._file, 8), "little")

    def close(self) -> None:
        """Gives the counter back."""
        if self._file >= 0:
            os.close(self._file)
