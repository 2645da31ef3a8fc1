"""Where a rank stands: on this machine, or on a node whose memory and clock are not the supervisor's (docs/guests.md)."""

from __future__ import annotations

import os
from pathlib import Path

from harness.fabric.plan import ADDRESS, CLOCK, NODE
from harness.record.counters import network_namespace


def node() -> int | None:
    """The node's number; None on this machine itself."""
    return int(os.environ[NODE]) if NODE in os.environ else None


def mapped(folder: Path) -> Path:
    """Folder for files that processes of one kernel map: the launch's own, on a node one in its memory, from which `rank/mirror.py` copies."""
    return folder if node() is None else Path(os.environ["TMPDIR"]) / "mapped"


def address(ordered: str) -> str:
    """The IP address that a rank here binds."""
    return os.environ.get(ADDRESS, ordered)


def to_supervisor_ns() -> int:
    """Add this to the monotonic clock here to get the supervisor's; good to what the two kernels' clocks of the day differ, below a millisecond."""
    return int(os.environ.get(CLOCK, "0"))


def namespace() -> str:
    """Name of this process's network namespace, different on every node."""
    return network_namespace() if node() is None else f"node{node()}/{network_namespace()}"
