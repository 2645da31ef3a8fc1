"""Ranks forked from one parent on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.spec.plugins import LauncherPlugin


class Local(Launcher):
    """One parent process forks all ranks."""

    waits_for_go = True

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """One parent for all ranks."""
        return [sys.executable, "-m", "scaleproof.rank.fork_ranks", str(folder), "--creator", str(os.getpid())]

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """No further variables."""
        return {}


PLUGIN = LauncherPlugin(
    name="local",
    summary="ranks forked from one parent on this machine",
    implementation=Local,
    outlives_ranks=True,
)
