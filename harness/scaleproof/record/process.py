"""What /proc tells of another process: its state, the processor time of it and its descendants, what it read from disk."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def process_state(pid: int, thread: int | None = None) -> tuple[str, float]:
    """From /proc/PID/stat the letter R, S, D, T, Z, ... and the processor time in s, of one thread when it is named;
    ('', 0) when there is none such."""
    place = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    try:
        fields = Path(place).read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_s(pid: int) -> float:
    """Processor time in s of a process's descendants, those that it has waited for included."""
    try:
        process = psutil.Process(pid)
        waited = process.cpu_times()
        return float(waited.children_user + waited.children_system) + sum(
            process_state(child.pid)[1] for child in process.children(recursive=True)
        )
    except psutil.Error:
        return 0.0


def disk_bytes(pid: int) -> int:
    """Bytes that a process read from storage; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/io").read_text().partition("\nread_bytes: ")[2].split("\n")[0])
    except (OSError, ValueError):
        return 0
