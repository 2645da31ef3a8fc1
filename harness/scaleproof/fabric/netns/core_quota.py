"""Processor time of nodes: a control group for each, versions 1 and 2."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scaleproof.record.cgroups import MOUNT

PERIOD_US, LONGEST_US, LEAST_US = 10_000, 1_000_000, 1000
"""How often a node gets its share; the kernel's usual 100 ms would stop a rank for most of that at a time. The kernel
gives 1 ms at least: a smaller share comes less often, once a second at the least."""
REMOVED_S = 2.0
"""How long a group may take to be empty after its processes were killed."""


class Quota:
    """One group for all nodes of a launch, one in it for each node."""

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
        """This process and its children from now on are the node's."""
        if not self.why:
            (self.folder / f"node{number}" / "cgroup.procs").write_text("0")

    def remove(self) -> None:
        """All groups, once the nodes have ended."""
        remove(self.folder.name, self.mount)

    def report(self) -> dict[str, Any]:
        """For the record: cores of each node as the kernel rounds them, and whether the limit is in effect; if not,
        `why`."""
        return {
            "cores": round(self.quota_us / self.period_us, 5),
            "version": self.version,
            "in_effect": not self.why,
            "why": self.why,
        }


def left(prefix: str, mount: Path = MOUNT) -> list[Path]:
    """Groups whose names begin so."""
    return sorted(path for folder in _controllers(mount) for path in folder.glob(f"{prefix}*") if path.is_dir())


def remove(name: str, mount: Path = MOUNT) -> list[str]:
    """Remove the groups with this name, whose processes have been killed; a line for each that is gone."""
    groups = [folder / name for folder in _controllers(mount) if (folder / name).is_dir()]
    until = time.monotonic() + REMOVED_S
    for group in groups:
        for folder in (*group.glob("node*"), group):
            while folder.is_dir() and time.monotonic() < until:
                with suppress(OSError):  # busy until the last process is gone
                    folder.rmdir()
                    break
                time.sleep(0.02)
    return [f"control group {group}" for group in groups if not group.is_dir()]


def _controllers(mount: Path) -> list[Path]:
    """Where groups with a share of processor time can be: version 2's one tree, version 1's tree of that controller."""
    return [
        folder
        for folder in ([mount] if (mount / "cgroup.controllers").exists() else [mount / "cpu", mount / "cpu,cpuacct"])
        if os.access(folder, os.W_OK)
    ]
