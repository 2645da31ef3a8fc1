"""A test's look at processes of another one, any of which may end while it looks."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def family(pid: int, *command: str) -> list[psutil.Process]:
    """Descendants whose command contains all of these words; without words also those that have not started yet."""
    members = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            members += [process] if set(command) <= set(process.cmdline()) and process.environ() else []
        except psutil.Error:
            continue
    return members


def remaining(processes: Iterable[psutil.Process], within_s: float = 5.0) -> list[psutil.Process]:
    """Those that have not ended after `within_s`; one that nobody has waited for has ended."""
    _, alive = psutil.wait_procs(list(processes), timeout=within_s)
    return [process for process in alive if process.is_running() and _status(process) != psutil.STATUS_ZOMBIE]


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE
