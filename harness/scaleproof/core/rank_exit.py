"""exit-N.json: how a rank's process ended. Its parent writes it; where the parent has ended, the process that watches
its node does."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from pathlib import Path

from scaleproof.core.atomic_write import write_json


def exit_file(folder: Path, rank: int) -> Path:
    """The path of one rank's exit file in the launch's folder."""
    return folder / f"exit-{rank}.json"


def write_missing_exits(folder: Path, ranks: Iterable[int], *, code: str, message: str, node: str) -> None:
    """Write the exit files of ranks whose parent ended before it could. Code decides by `code` and `node`; the message
    is for people."""
    for rank in ranks:
        file = exit_file(folder, rank)
        if not file.exists():
            end = {
                "pid": 0,
                "exit_code": None,
                "signal": int(signal.SIGKILL),
                "at_ns": time.monotonic_ns(),
                "code": code,
                "message": message,
                "node": node,
            }
            write_json(file, end)
