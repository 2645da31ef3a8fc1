"""Another process: its state, processor time of it and of its descendants, bytes it read from disk.

State and processor time of a thread come from /proc, since psutil has no state of a thread."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def process_state(pid: int, thread: int | None = None) -> tuple[str, float]:
    """State as the letter in /proc/PID/stat (R, S, D, T, Z, ...) and processor time in s, of a process or one thread;
    ('', 0) if it does not exist."""
    path = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_s(pid: int) -> float:
    """Processor time in s of a process's descendants, including those that ended and that it has waited for."""
    try:
        process = psutil.Process(pid)
        waited = process.cpu_times()
        return float(waited.children_user + waited.children_system) + sum(
            process_state(child.pid)[1] for child in process.children(recursive=True)
        )
    except psutil.Error:
        return 0.0


def disk_bytes(pid: int) -> int:
    """Bytes that a process read from storage; 0 where the kernel does not count or show them."""
    try:
        return int(psutil.Process(pid).io_counters().read_bytes)
    except (psutil.Error, OSError, RuntimeError):
        return 0
