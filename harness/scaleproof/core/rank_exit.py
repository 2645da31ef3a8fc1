"""exit-N.json: how a rank's process ended. Its parent writes it; where that is gone, whoever watched its node does."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from pathlib import Path

from scaleproof.core.atomic_write import write_json


def exit_file(folder: Path, rank: int) -> Path:
    """Of one rank of a launch."""
    return folder / f"exit-{rank}.json"


def write_missing_exits(folder: Path, ranks: Iterable[int], *, code: str, message: str, node: str) -> None:
    """For ranks of a node that ended before their parent could write it: the failure code, and a message for people."""
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
