"""`python -m scaleproof.fabric.guests.guest_coordinator FOLDER`: makes the network, boots the nodes of guests.json, and
ends when they have ended.

It is the first process of its own process and network namespaces: the kernel ends every node and removes the network
when it has ended, however it ended."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import write_json
from scaleproof.fabric.capture import FILE, Capture
from scaleproof.fabric.guests import bridge, guest_kernels, qemu, uml
from scaleproof.fabric.guests.guest_plan import GuestPlan, read_plan
from scaleproof.fabric.node_coordinator import LaunchCoordinator, Node


class GuestCoordinator(LaunchCoordinator):
    """Nodes with their own kernels, on one switch."""

    # They take 2 s and 12 s on a quiet machine.
    BOOT_LIMIT_S = {"uml": 90.0, "qemu": 300.0}

    def __init__(self, folder: Path, plan: GuestPlan) -> None:
        super().__init__(folder, plan.kind, plan.ranks)
        self.plan = plan
        self.capture: Capture | None = None

    def build(self) -> None:
        """See NodeCoordinator."""
        bridge.make(self.plan)
        if self.plan.capture:
            self.capture = Capture(self.folder / FILE, [bridge.tap(number) for number in range(self.plan.nodes)])
        write_json(
            self.folder / "environment.json",
            dict(os.environ) | {"real_minus_monotonic_ns": str(time.time_ns() - time.monotonic_ns())},
        )
        for number in range(self.plan.nodes):
            self.nodes.append(Node(number, self._boot(number), time.monotonic()))

    def _boot(self, number: int) -> subprocess.Popen[bytes]:
        start, kernel = uml.boot, guest_kernels.uml()
        if self.plan.kind == "qemu":
            start, kernel = qemu.boot, guest_kernels.qemu()
        if kernel is None:
            raise SystemExit(f"no {self.plan.kind} kernel in the cache; {guest_kernels.ADVICE}")
        program = [sys.executable, "-m", "scaleproof.fabric.guests.guest_node", str(self.folder), str(number)]
        with (self.folder / f"node-{number}.console").open("wb") as console:
            return start(kernel, self.plan, self.folder, number, program, console)

    def set_link(self, number: int, up: bool) -> None:
        """See NodeCoordinator."""
        bridge.set_link(number, up)

    def report(self) -> dict[str, Any]:
        """See LaunchCoordinator."""
        nodes = self.node_reports()
        return {
            "kind": self.plan.kind,
            "nodes": self.plan.nodes,
            "mtu": self.plan.mtu,
            "link_mbit": self.plan.link_mbit,
            "link_delay_ms": self.plan.link_delay_ms,
            "rdma": "soft-RoCE",
            "kernel": next((node["kernel"] for node in nodes if node), ""),
            "found": [node and node["link"] for node in nodes],
            "booted_s": [node and node["booted_s"] for node in nodes],
        }

    def captured(self) -> dict[str, Any] | None:
        """See LaunchCoordinator."""
        return self.capture.stop() if self.capture else None


def main() -> int:
    """The highest exit code of the nodes' commands."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder: Path = arguments.parse_args().folder
    return GuestCoordinator(folder, read_plan(folder)).run()


if __name__ == "__main__":
    sys.exit(main())
