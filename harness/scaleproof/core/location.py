"""Where a rank runs: on this machine, on a node of namespaces with process numbers of its own (docs/netns.md), or on
a node whose kernel, memory and clock are not the supervisor's (docs/guests.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from scaleproof.core.counters import network_namespace

ADDRESS, NODE, CLOCK = "SCALEPROOF_ADDRESS", "SCALEPROOF_NODE", "SCALEPROOF_CLOCK_NS"
"""Environment variables of every process of a node: the node's address, its number, and, where the node has its own
kernel, what to add to its monotonic clock to get the supervisor's (ns)."""
PROC = "SCALEPROOF_PROC"
"""Environment variable where a node has its own PID namespace: a folder with the supervisor's /proc."""


def node() -> int | None:
    """The node's number; None on this machine itself."""
    return int(os.environ[NODE]) if NODE in os.environ else None


def has_own_kernel() -> bool:
    """Whether this node has its own kernel: then the supervisor can neither map its files nor see its processes."""
    return CLOCK in os.environ


def mapped(folder: Path) -> Path:
    """Folder for files that processes of one kernel map: the launch's folder; on a node with its own kernel a folder in
    its memory, from which `rank/status_publisher.py` copies."""
    return Path(os.environ["TMPDIR"]) / "mapped" if has_own_kernel() else folder


def pid() -> int:
    """This process's id in the supervisor's PID namespace; on a node with its own kernel, its id there."""
    return int(os.readlink(Path(os.environ[PROC], "self"))) if PROC in os.environ else os.getpid()


def threads(own: Sequence[int]) -> list[int]:
    """Ids of threads of this process in the supervisor's PID namespace."""
    if PROC not in os.environ:
        return list(own)
    inner = {int(task.name): _inner_id(task) for task in Path(os.environ[PROC], str(pid()), "task").iterdir()}
    return [outer for outer, number in inner.items() if number in own]


def _inner_id(task: Path) -> int | None:
    """The thread's id in its innermost PID namespace; None if it has ended since the folder was listed."""
    try:
        status = (task / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(status.partition("\nNSpid:")[2].split("\n")[0].split()[-1])


def address(of_launch: str) -> str:
    """The IP address that ranks of this node bind."""
    return os.environ.get(ADDRESS, of_launch)


def to_supervisor_ns() -> int:
    """What to add to this node's monotonic clock to get the supervisor's. The error is the difference of the two
    kernels' wall clocks, below a millisecond."""
    return int(os.environ.get(CLOCK, "0"))


def namespace() -> str:
    """Name of this process's network namespace, different on every node."""
    return network_namespace() if node() is None else f"node{node()}/{network_namespace()}"
