"""One supervisor per results folder, or several whose launches are not timed."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from scaleproof.spec.errors import SpecError

WAIT_S, POLL_S = 2.0, 0.01
"""How long a supervisor that shares waits for one that holds the folder alone for a moment, at its start."""


@contextmanager
def locked(results: Path, shared: bool = False) -> Iterator[None]:
    """Hold results/.lock; SpecError names the process that holds it already. `shared`: beside others that share it. The
    kernel releases it when the holder dies."""
    results.mkdir(parents=True, exist_ok=True)
    with (results / ".lock").open("a+") as file:
        until = time.monotonic() + (WAIT_S if shared else 0.0)
        while not _taken(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, results):
            if time.monotonic() >= until:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise SpecError(f"another scaleproof (pid {holder}) is using {results}")
            time.sleep(POLL_S)
        file.truncate(0)
        file.write(f"{os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def _taken(file: TextIO, kind: int, results: Path) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise SpecError(
            f"{results}: its file system cannot lock files ({error.strerror}); name another folder with --results"
        ) from None
    return True
