"""Contract of a launcher: from a launch's folder to the command that starts its ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from harness.rank.orders import Orders


class Launcher(Protocol):
    """Says what to start; the supervisor starts, watches and ends it."""

    def command(self, folder: Path, orders: Orders) -> list[str]:
        """The command that starts all ranks of the launch and ends when they have ended."""

    def environment(self, folder: Path, orders: Orders) -> dict[str, str]:
        """Variables on top of those that every launch gets."""

    def scratch(self, orders: Orders) -> list[Path]:
        """Folders outside the launch's own that it uses; made before and removed after the launch."""
