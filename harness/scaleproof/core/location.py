"""Where a rank runs: on this machine, on a node of namespaces with process numbers of its own (docs/netns.md), or on
a node whose kernel, memory and clock are not the supervisor's (docs/guests.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from scaleproof.core.counters import network_namespace

ADDRESS, NODE, CLOCK = "SCALEPROOF_ADDRESS", "SCALEPROOF_NODE", "SCALEPROOF_CLOCK_NS"
"""In the environment of every process of a node: its address, its number, and, where the node has a kernel of its own,
what to add to its monotonic clock to get the supervisor's (ns)."""
PROC = "SCALEPROOF_PROC"
"""The same where a node has process numbers of its own: a folder with /proc as the supervisor has it."""


def node() -> int | None:
    """The node's number; None on this machine itself."""
    return int(os.environ[NODE]) if NODE in os.environ else None


def has_own_kernel() -> bool:
    """Whether the supervisor can neither map what is mapped here nor see this process."""
    return CLOCK in os.environ


def mapped(folder: Path) -> Path:
    """Folder for files that processes of one kernel map: the launch's own, on a node with a kernel of its own one in
    its memory, from which `rank/status_publisher.py` copies."""
    return Path(os.environ["TMPDIR"]) / "mapped" if has_own_kernel() else folder


def pid() -> int:
    """This process's number as the supervisor knows it; where the node has a kernel of its own, as the node does."""
    return int(os.readlink(Path(os.environ[PROC], "self"))) if PROC in os.environ else os.getpid()


def threads(own: Sequence[int]) -> list[int]:
    """Numbers of threads of this process as the supervisor knows them."""
    if PROC not in os.environ:
        return list(own)
    tasks = {int(task.name): task for task in Path(os.environ[PROC], str(pid()), "task").iterdir()}
    inner = {
        outer: int((task / "status").read_text().partition("\nNSpid:")[2].split("\n")[0].split()[-1])
        for outer, task in tasks.items()
    }
    return [outer for outer, number in inner.items() if number in own]


def address(of_launch: str) -> str:
    """The IP address that a rank here binds."""
    return os.environ.get(ADDRESS, of_launch)


def to_supervisor_ns() -> int:
    """Add this to the monotonic clock here to get the supervisor's; good to what the two kernels' clocks of the day
    differ, below a millisecond."""
    return int(os.environ.get(CLOCK, "0"))


def namespace() -> str:
    """Name of this process's network namespace, different on every node."""
    return network_namespace() if node() is None else f"node{node()}/{network_namespace()}"
