"""The state of ranks' processes from outside: on this machine from /proc, on other nodes from files that they
publish."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from scaleproof.core.atomic_write import read_json
from scaleproof.rank.status_publisher import STACKS, processes_file
from scaleproof.record.process import disk_bytes, family_s, process_state


class Processes(Protocol):
    """Methods take the rank besides the pid, since a pid means nothing outside its kernel."""

    def state(self, rank: int, pid: int, pollers: Sequence[int]) -> tuple[str, float]:
        """The letter of its state, and its processor time in s without its polling threads; ('', 0) when it has ended
        or is not known."""

    def family_s(self, rank: int, pid: int) -> float:
        """Processor time in s of its descendants, where `state` does not include them."""

    def disk_bytes(self, rank: int, pid: int) -> int:
        """Bytes that it has read from storage."""

    def request_stacks(self, folder: Path) -> bool:
        """Request the stacks of every living rank; False: the caller has to send a signal to each."""


class Here:
    """Processes of this machine."""

    def state(self, rank: int, pid: int, pollers: Sequence[int]) -> tuple[str, float]:
        """See Processes."""
        state, used_s = process_state(pid)
        return state, used_s - sum(process_state(pid, thread)[1] for thread in pollers)

    def family_s(self, rank: int, pid: int) -> float:
        """See Processes."""
        return family_s(pid)

    def disk_bytes(self, rank: int, pid: int) -> int:
        """See Processes."""
        return disk_bytes(pid)

    def request_stacks(self, folder: Path) -> bool:
        """See Processes."""
        return False


class OnNodes:
    """Processes on other nodes, which publish their states (rank/status_publisher.py). `nodes`: the number of each
    rank's node."""

    def __init__(self, folder: Path, nodes: Sequence[int]) -> None:
        self.folder, self.nodes = folder, nodes

    def state(self, rank: int, pid: int, pollers: Sequence[int]) -> tuple[str, float]:
        """See Processes."""
        status = self._status(rank)
        return str(status.get("state", "")), float(status.get("used_s", 0.0))

    def family_s(self, rank: int, pid: int) -> float:
        """0: `state` includes it."""
        return 0.0

    def disk_bytes(self, rank: int, pid: int) -> int:
        """See Processes."""
        return int(self._status(rank).get("read_bytes", 0))

    def request_stacks(self, folder: Path) -> bool:
        """By a file that every node polls."""
        (folder / STACKS).write_text(str(time.monotonic_ns()))
        return True

    def _status(self, rank: int) -> dict[str, Any]:
        return (read_json(processes_file(self.folder, self.nodes[rank])) or {}).get(str(rank), {})
