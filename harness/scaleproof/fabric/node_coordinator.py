"""Coordinators of emulated nodes on this machine. A coordinator builds the network, starts the nodes, unplugs their
cables on request and ends them. For a launch it also reports how nodes and their ranks ended."""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.rank_exit import write_missing_exits
from scaleproof.fabric.guests.guest_plan import LINKS, REPORT

POLL_S = 0.05


class Process(Protocol):
    """The first process of a node, as the coordinator sees it; the leader of a process group."""

    @property
    def pid(self) -> int:
        """The process id in the coordinator's namespace."""

    def poll(self) -> int | None:
        """Exit code, or the negative number of the signal that ended it; None while it runs."""

    def wait(self) -> int:
        """Wait until it has ended, and return its exit code."""


@dataclass(slots=True)
class Node:
    """One node. `code`: exit code of its command; None while it runs."""

    number: int
    process: Process
    started: float
    up: bool = False
    code: int | None = None

    def end(self) -> None:
        """Kill all processes of the node."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class NodeCoordinator(ABC):
    """All nodes of one folder, and their cables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unplugged = set[int]()

    @abstractmethod
    def build(self) -> None:
        """Build the network and start the nodes."""

    @abstractmethod
    def set_link(self, number: int, up: bool) -> None:
        """Plug in or unplug a node's cables."""

    def update_links(self, plugged: Mapping[int, bool]) -> None:
        """Plug in or unplug the cables whose state differs from the requested one."""
        for number, up in plugged.items():
            if up == (number in self.unplugged):
                self.set_link(number, up)
                (self.unplugged.discard if up else self.unplugged.add)(number)


class LaunchCoordinator(NodeCoordinator):
    """Nodes that run one command each. A node writes node-N.json once it is up, and node-N.end when its command has
    ended."""

    # seconds from a node's start until it must be up, by kind of node
    BOOT_LIMIT_S: ClassVar[dict[str, float]]

    def __init__(self, folder: Path, kind: str, ranks: list[list[int]]) -> None:
        super().__init__(folder)
        self.kind, self.ranks = kind, ranks
        self.nodes: list[Node] = []

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """The network as it was set, and as each node measured it before its command."""

    def captured(self) -> dict[str, Any] | None:
        """What a packet capture counted, which ends here; None without one."""
        return None

    def ends_by_itself(self, node: Node) -> bool:
        """Whether the node's command ends by itself; if not, the node is ended with the others."""
        return True

    def clean_up(self) -> None:
        """Remove what the kernel does not remove when the coordinator ends."""

    def run(self) -> int:
        """Build, wait until all nodes have ended, and clean up. Returns the highest exit code of their commands."""
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
        self.build()
        code = self._wait()
        write_json(self.folder / REPORT, self.report() | {"wire": self.captured()})
        for node in self.nodes:
            if node.code is None:
                node.end()
        self.clean_up()
        return code

    def node_reports(self) -> list[dict[str, Any] | None]:
        """The report that each node wrote when it was up; None if it did not come up."""
        return [read_json(self.folder / f"node-{node.number}.json") for node in self.nodes]

    def check_network(self) -> None:
        """Plug in or unplug cables as requested in links.json."""
        requested = read_json(self.folder / LINKS) or {}
        self.update_links({node.number: bool(requested.get(str(node.number), True)) for node in self.nodes})

    def _wait(self) -> int:
        reported = False
        while any(node.code is None for node in self.nodes if self.ends_by_itself(node)):
            self.check_network()
            if not reported and all(node.up for node in self.nodes):
                write_json(self.folder / REPORT, self.report() | {"wire": None})
                reported = True
            for node in self.nodes:
                if node.code is None:
                    self._check_node(node)
            time.sleep(POLL_S)
        return max(node.code or 0 for node in self.nodes)

    def _check_node(self, node: Node) -> None:
        exit_code, end = node.process.poll(), read_json(self.folder / f"node-{node.number}.end")
        node.up = node.up or (self.folder / f"node-{node.number}.json").exists()
        limit_s = self.BOOT_LIMIT_S[self.kind]
        if end is not None:
            self._command_ended(node, end)
        elif exit_code is not None:
            self._node_died(node, "rank_killed" if node.up else "start_failed", describe_end(exit_code))
        elif not node.up and time.monotonic() - node.started > limit_s:
            node.end()
            self._node_died(node, "start_failed", f"did not boot within {limit_s:g} s")

    def _command_ended(self, node: Node, end: dict[str, Any]) -> None:
        node.code = int(end["code"])
        node.end()  # all its output is written; waiting for a regular shutdown would only take time
        why = end.get("why") or f"the parent ended with code {node.code} and did not report how its ranks ended"
        if "why" in end:
            print(f"node {node.number}: {why}", flush=True)
        self._write_exits(node, "start_failed", f"node {node.number}: {why}")

    def _node_died(self, node: Node, code: str, how: str) -> None:
        """Report the end of the node's ranks, which cannot do so themselves."""
        node.code = 255
        last = self._last_console_line(node)
        message = f"node {node.number} {how}" + (f"; its console ends with: {last}" if last else "")
        print(message, flush=True)
        self._write_exits(node, code, message)

    def _write_exits(self, node: Node, code: str, message: str) -> None:
        ranks = self.ranks[node.number] if self.ranks else []
        write_missing_exits(self.folder, ranks, code=code, message=message, node=f"node{node.number}")

    def _last_console_line(self, node: Node) -> str:
        text = (self.folder / f"node-{node.number}.console").read_bytes()[-4096:].decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        panic = next((line for line in lines if "Kernel panic" in line), "")
        return (panic or (lines[-1] if lines else ""))[:200]


def describe_end(exit_code: int) -> str:
    """Describes how a node's first process ended."""
    if exit_code < 0:
        return f"was killed by {signal.Signals(-exit_code).name}"
    return f"powered off before its command had ended (code {exit_code})"
