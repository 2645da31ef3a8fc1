"""Limits the processor time of nodes by control groups, versions 1 and 2."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scaleproof.record.cgroups import MOUNT

PERIOD_US, LONGEST_US, LEAST_US = 10_000, 1_000_000, 1000
"""Period in which a node gets its share: with the kernel's default of 100 ms a rank would be stopped for most of that
time. The kernel grants at least 1 ms per period, so a smaller share gets a longer period, at most one second."""
REMOVED_S = 2.0
"""How long a group may take to become empty after its processes were killed."""


class Quota:
    """A group for all nodes of a launch, and in it a group for each node."""

    def __init__(self, name: str, nodes: int, cores: float, mount: Path = MOUNT) -> None:
        self.why, self.mount = "", mount
        self.period_us = min(max(PERIOD_US, round(LEAST_US / cores)), LONGEST_US)
        self.quota_us = max(round(cores * self.period_us), LEAST_US)
        self.version = 2 if (mount / "cgroup.controllers").exists() else 1
        self.folder = (_controllers(mount) or [mount])[0] / name
        try:
            self.folder.mkdir()
            if self.version == 2:
                for folder in (mount, self.folder):
                    (folder / "cgroup.subtree_control").write_text("+cpu")
            for number in range(nodes):
                self._limit(number)
        except OSError as error:
            self.why = f"{error.strerror or error}: {error.filename or self.folder}"

    def _limit(self, number: int) -> None:
        node = self.folder / f"node{number}"
        node.mkdir()
        if self.version == 2:
            (node / "cpu.max").write_text(f"{self.quota_us} {self.period_us}")
        else:
            (node / "cpu.cfs_period_us").write_text(str(self.period_us))
            (node / "cpu.cfs_quota_us").write_text(str(self.quota_us))

    def join(self, number: int) -> None:
        """Adds this process, and its later children, to the node's group."""
        if not self.why:
            (self.folder / f"node{number}" / "cgroup.procs").write_text("0")

    def remove(self) -> None:
        """Removes all groups after the nodes have ended."""
        remove(self.folder.name, self.mount)

    def report(self) -> dict[str, Any]:
        """For the record: cores of each node as rounded by the kernel, and whether the limit is in effect; if not,
        `why`."""
        return {
            "cores": round(self.quota_us / self.period_us, 5),
            "version": self.version,
            "in_effect": not self.why,
            "why": self.why,
        }


def leftovers(prefix: str, mount: Path = MOUNT) -> list[Path]:
    """Groups whose names begin with `prefix`."""
    return sorted(path for folder in _controllers(mount) for path in folder.glob(f"{prefix}*") if path.is_dir())


def remove(name: str, mount: Path = MOUNT) -> list[str]:
    """Removes the groups with this name, whose processes have been killed. Returns a line for each removed group."""
    groups = [folder / name for folder in _controllers(mount) if (folder / name).is_dir()]
    until = time.monotonic() + REMOVED_S
    for group in groups:
        for folder in (*group.glob("node*"), group):
            while folder.is_dir() and time.monotonic() < until:
                with suppress(OSError):  # busy until the last process has ended
                    folder.rmdir()
                    break
                time.sleep(0.02)
    return [f"control group {group}" for group in groups if not group.is_dir()]


def _controllers(mount: Path) -> list[Path]:
    """Folders that can hold groups with a CPU limit: version 2's only tree, or version 1's tree of the controller."""
    return [
        folder
        for folder in ([mount] if (mount / "cgroup.controllers").exists() else [mount / "cpu", mount / "cpu,cpuacct"])
        if os.access(folder, os.W_OK)
    ]
