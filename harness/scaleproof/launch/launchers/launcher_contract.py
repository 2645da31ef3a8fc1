"""Contract of a launcher: from a launch's folder to the command that starts its ranks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from scaleproof.core.launch_spec import ENVIRONMENT, LaunchSpec

SHARED = Path("/dev/shm")
"""Folder of a launch's shared memory and scratch; all names in it contain the launch's id."""


class Launcher(Protocol):
    """Gives the command that the supervisor starts, watches and ends."""

    waits_for_go: bool = False
    """Whether the command takes go_signal.WAIT_FOR_GO as its last argument: it imports, then waits to fork ranks."""

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """The command that starts all ranks of the launch and ends when they have ended."""

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """Environment variables besides those that every launch has."""


def waits_for_go(launcher: Launcher) -> bool:
    """Whether it does; a launcher of another package may say nothing of it."""
    return getattr(launcher, "waits_for_go", False)


SCRATCH = "scaleproof-"
"""Prefix of the name of a launch's scratch folder; the launch's id follows."""


def scratch(launch: str) -> Path:
    """Folder of the temporary files of a launch's processes and their libraries; made before and removed after the
    launch, or by the next run. Its path is short, since Open MPI makes sockets in it, whose paths are limited to 107
    bytes. A launch inside a rank of another launch has its scratch inside the outer one."""
    outer = os.environ.get(ENVIRONMENT, launch)
    return SHARED / f"{SCRATCH}{outer}" / (f"{SCRATCH}{launch}" if outer != launch else "")


def node_scratch(launch: str, node: int) -> Path:
    """The scratch folder on a node of an allocation; several nodes may be one machine."""
    return SHARED / f"{SCRATCH}{launch}" / f"n{node}"


def ranks_of(node: int, nodes: int, ranks: int) -> list[int]:
    """The ranks of a node: rank r runs on node r * nodes // ranks."""
    return [rank for rank in range(ranks) if rank * nodes // ranks == node]
