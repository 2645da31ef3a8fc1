"""Contract of a launcher: from a launch's folder to the command that starts its ranks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from scaleproof.core.launch_spec import ENVIRONMENT, LaunchSpec

SHARED = Path("/dev/shm")
"""Where a launch may leave named things; the names carry its id."""


class Launcher(Protocol):
    """Says what to start; the supervisor starts, watches and ends it."""

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """The command that starts all ranks of the launch and ends when they have ended."""

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """Variables on top of those that every launch gets."""


SCRATCH = "scaleproof-"
"""How the name of a launch's scratch begins; the launch's id follows."""


def scratch(launch: str) -> Path:
    """Where a launch's processes and their libraries put temporary files; made before and removed after the launch, or
    by the next run. A short path: Open MPI makes sockets inside it, whose names are limited to 107 bytes. A launch
    inside a rank of another has its own inside that one's."""
    outer = os.environ.get(ENVIRONMENT, launch)
    return SHARED / f"{SCRATCH}{outer}" / (f"{SCRATCH}{launch}" if outer != launch else "")


def node_scratch(launch: str, node: int) -> Path:
    """The same on a node of an allocation; nodes may be one machine."""
    return SHARED / f"{SCRATCH}{launch}" / f"n{node}"


def ranks_of(node: int, nodes: int, ranks: int) -> list[int]:
    """Rank r stands on node r * nodes // ranks."""
    return [rank for rank in range(ranks) if rank * nodes // ranks == node]
