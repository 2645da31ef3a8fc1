"""`python -m harness.fabric.keeper FOLDER`: makes the wire, boots the nodes of guests.json, and ends when they have ended.

It is the first process of its own process and network namespaces: the kernel ends every node and removes the wire when it is gone, however it went."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.fabric import _qemu, _uml, kernels, wire
from harness.fabric.capture import FILE, Capture
from harness.fabric.plan import LINKS, REPORT, GuestPlan, put, read_plan, take

BOOT_S = {"uml": 90.0, "qemu": 300.0}
"""From the start of a kernel to the first word of its node; 2 s and 12 s on a quiet machine."""
POLL_S = 0.05


@dataclass(slots=True)
class Node:
    """One guest: its kernel's process, and what it has told."""

    number: int
    process: subprocess.Popen[bytes]
    started: float
    up: bool = False
    code: int | None = None
    """Exit code of its command; None while it runs, or when it never told."""


@dataclass(slots=True)
class Keeper:
    """All nodes of one folder."""

    folder: Path
    plan: GuestPlan
    nodes: list[Node] = field(default_factory=list)
    capture: Capture | None = None
    pulled: set[int] = field(default_factory=set)
    """Nodes whose cable is out."""

    def boot(self) -> None:
        """Wire and nodes."""
        wire.make(self.plan)
        if self.plan.capture:
            self.capture = Capture(self.folder / FILE, [wire.tap(number) for number in range(self.plan.nodes)])
        put(self.folder / "environment.json", dict(os.environ) | {"real_minus_monotonic_ns": str(time.time_ns() - time.monotonic_ns())})
        for number in range(self.plan.nodes):
            program = [sys.executable, "-m", "harness.fabric.node", str(self.folder), str(number)]
            with (self.folder / f"node-{number}.console").open("wb") as console:
                start, kernel = (_qemu.boot, kernels.qemu()) if self.plan.kind == "qemu" else (_uml.boot, kernels.uml())
                if kernel is None:
                    raise SystemExit(f"no {self.plan.kind} kernel in the cache; {kernels.ADVICE}")
                self.nodes.append(Node(number, start(kernel, self.plan, self.folder, number, program, console), time.monotonic()))

    def wait(self) -> int:
        """Until every node has ended; the worst exit code of their commands."""
        reported = False
        while any(node.code is None for node in self.nodes):
            self._follow_links()
            if not reported and all(node.up for node in self.nodes):
                put(self.folder / REPORT, self.report())
                reported = True
            for node in self.nodes:
                if node.code is None:
                    self._look(node)
            time.sleep(POLL_S)
        return max(node.code or 0 for node in self.nodes)

    def _follow_links(self) -> None:
        """Pull cables or put them back, as links.json says."""
        wanted = take(self.folder / LINKS) or {}
        for number in (node.number for node in self.nodes):
            up = bool(wanted.get(str(number), True))
            if up == (number in self.pulled):
                wire.set_link(number, up)
                (self.pulled.discard if up else self.pulled.add)(number)

    def _look(self, node: Node) -> None:
        gone, told = node.process.poll(), take(self.folder / f"node-{node.number}.end")
        node.up = node.up or (self.folder / f"node-{node.number}.json").exists()
        if told is not None:
            node.code = int(told["code"])
            self._end(node)  # all that it wrote is there: its own powering off would only take time
            why = told.get("why") or f"the parent ended with code {node.code} and did not tell how its ranks ended"
            if "why" in told:
                print(f"node {node.number}: {why}", flush=True)
            self._tell_for_ranks(node, "start_failed", f"node {node.number}: {why}")
        elif gone is not None:
            self._died(node, "rank_killed" if node.up else "start_failed", how(gone))
        elif not node.up and time.monotonic() - node.started > BOOT_S[self.plan.kind]:
            self._end(node)
            self._died(node, "start_failed", f"did not boot within {BOOT_S[self.plan.kind]:g} s")

    def _end(self, node: Node) -> None:
        with suppress(ProcessLookupError):
            os.killpg(node.process.pid, signal.SIGKILL)
        node.process.wait()

    def _died(self, node: Node, code: str, how: str) -> None:
        """Its ranks cannot tell how they ended."""
        node.code = 255
        last = self._last_words(node)
        message = f"node {node.number} {how}" + (f"; its console ends with: {last}" if last else "")
        print(message, flush=True)
        self._tell_for_ranks(node, code, message)

    def _tell_for_ranks(self, node: Node, code: str, message: str) -> None:
        for rank in self.plan.ranks[node.number] if self.plan.ranks else []:
            if not (self.folder / f"exit-{rank}.json").exists():
                end = {"pid": 0, "exit_code": None, "signal": int(signal.SIGKILL), "at_ns": time.monotonic_ns(), "code": code, "message": message}
                put(self.folder / f"exit-{rank}.json", end)

    def _last_words(self, node: Node) -> str:
        text = (self.folder / f"node-{node.number}.console").read_bytes()[-4096:].decode(errors="replace")
        said = [line.strip() for line in text.splitlines() if line.strip()]
        return next((line for line in said if "Kernel panic" in line), said[-1] if said else "")[:200]

    def report(self) -> dict[str, Any]:
        """The network as it was set, and as each node found it before its command."""
        found = [take(self.folder / f"node-{node.number}.json") for node in self.nodes]
        return {
            "kind": self.plan.kind, "nodes": self.plan.nodes, "mtu": self.plan.mtu, "link_mbit": self.plan.link_mbit, "link_delay_ms": self.plan.link_delay_ms,
            "rdma": "soft-RoCE", "kernel": next((node["kernel"] for node in found if node), ""), "found": [node and node["link"] for node in found],
            "booted_s": [node and node["booted_s"] for node in found], "wire": None,
        }  # fmt: skip


def how(code: int) -> str:
    """A kernel's end in words."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"powered off before its command had ended (code {code})"


def main() -> int:
    """The worst exit code of the nodes' commands."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder: Path = arguments.parse_args().folder
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    keeper = Keeper(folder, read_plan(folder))
    keeper.boot()
    code = keeper.wait()
    put(folder / REPORT, keeper.report() | {"wire": keeper.capture.stop() if keeper.capture else None})
    return code


if __name__ == "__main__":
    sys.exit(main())
