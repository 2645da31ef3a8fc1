"""A launcher: as `local`, at the lowest priority of the processor."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.spec.plugins import LauncherPlugin


class LowPriority(Launcher):
    """One parent, which forks all ranks."""

    waits_for_go = True

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """What starts the ranks and ends when they have ended."""
        return [
            "nice",
            "-n",
            "19",
            sys.executable,
            "-m",
            "scaleproof.rank.fork_ranks",
            str(folder),
            "--creator",
            str(os.getpid()),
        ]

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """Nothing of its own."""
        return {}


PLUGIN = LauncherPlugin(
    name="low_priority",
    summary="ranks forked here at the lowest priority",
    implementation=LowPriority,
    substitutes="local",
)
