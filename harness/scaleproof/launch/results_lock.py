"""One supervisor per results folder."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scaleproof.spec.errors import SpecError


@contextmanager
def locked(results: Path) -> Iterator[None]:
    """Hold results/.lock; SpecError names the process that holds it already. The kernel releases it when the holder
    dies."""
    results.mkdir(parents=True, exist_ok=True)
    with (results / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise SpecError(f"another scaleproof (pid {file.read().strip() or 'unknown'}) is using {results}") from None
        except OSError as error:
            raise SpecError(
                f"{results}: its file system cannot lock files ({error.strerror}); name another folder with --results"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield
