"""A slot for each core, so that no more predictions run at a time on this machine than it has cores, whoever asked for
them: more would take turns and empty each other's caches (two experiments with two each took 15 % longer)."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scaleproof.record.host import usable_cores

POLL_S = 0.02


@contextmanager
def core_slot() -> Iterator[None]:
    """Wait for a free slot and hold it; the kernel frees that of a process that dies. Where the folder for temporary
    files cannot be written or has no locks, nothing waits."""
    try:
        files = [_slot(number) for number in range(max(1, int(usable_cores())))]
    except OSError:
        yield
        return
    try:
        while not any(map(_taken, files)):
            time.sleep(POLL_S)
        yield
    finally:
        for descriptor in files:
            os.close(descriptor)


def _slot(number: int) -> int:
    folder = Path(tempfile.gettempdir(), f"scaleproof-cores-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return os.open(folder / str(number), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another process holds it
        return False
    except OSError:  # no locks here
        return True
    return True
