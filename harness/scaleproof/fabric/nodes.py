"""The life of a launch's nodes, whatever they are made of: started, seen to be up, ended; how a node ended is told for
its ranks."""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.fabric.guests.guest_plan import LINKS, REPORT

POLL_S = 0.05


class Process(Protocol):
    """The first process of a node, as the keeper sees it; the leader of a process group."""

    @property
    def pid(self) -> int:
        """Its number here."""

    def poll(self) -> int | None:
        """Its exit code, the signal's number with a minus where one ended it; None while it runs."""

    def wait(self) -> int:
        """The same once it has ended."""


@dataclass(slots=True)
class Node:
    """One node, and what it has told."""

    number: int
    process: Process
    started: float
    up: bool = False
    code: int | None = None
    """Exit code of its command; None while it runs, or when it never told."""


class Keeper(ABC):
    """All nodes of one folder. Each tells in files of it: node-N.json once it is up, node-N.end when its command has
    ended."""

    BOOT_S: ClassVar[dict[str, float]]
    """By kind of node: from its start to its first word."""

    def __init__(self, folder: Path, kind: str, ranks: list[list[int]]) -> None:
        self.folder, self.kind, self.ranks = folder, kind, ranks
        self.nodes: list[Node] = []
        self.pulled = set[int]()
        """Nodes whose cables are out."""

    @abstractmethod
    def boot(self) -> None:
        """Network and nodes."""

    @abstractmethod
    def set_link(self, number: int, up: bool) -> None:
        """Pull a node's cables, or put them back."""

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """The network as it was set, and as each node found it before its command."""

    def wait(self) -> int:
        """Until every node has ended; the worst exit code of their commands."""
        reported = False
        while any(node.code is None for node in self.nodes if self.works(node)):
            self.look_at_network()
            if not reported and all(node.up for node in self.nodes):
                write_json(self.folder / REPORT, self.report())
                reported = True
            for node in self.nodes:
                if node.code is None:
                    self._look(node)
            time.sleep(POLL_S)
        return max(node.code or 0 for node in self.nodes)

    def works(self, node: Node) -> bool:
        """Whether its command ends by itself; else it ends with the others."""
        return True

    def found(self) -> list[dict[str, Any] | None]:
        """What each node told when it was up."""
        return [read_json(self.folder / f"node-{node.number}.json") for node in self.nodes]

    def look_at_network(self) -> None:
        """Pull cables or put them back, as links.json says."""
        wanted = read_json(self.folder / LINKS) or {}
        for number in (node.number for node in self.nodes):
            up = bool(wanted.get(str(number), True))
            if up == (number in self.pulled):
                self.set_link(number, up)
                (self.pulled.discard if up else self.pulled.add)(number)

    def end_waiting(self) -> None:
        """Nodes whose command does not end by itself."""
        for node in self.nodes:
            if node.code is None:
                self._end(node)

    def _look(self, node: Node) -> None:
        gone, told = node.process.poll(), read_json(self.folder / f"node-{node.number}.end")
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
        elif not node.up and time.monotonic() - node.started > self.BOOT_S[self.kind]:
            self._end(node)
            self._died(node, "start_failed", f"did not boot within {self.BOOT_S[self.kind]:g} s")

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
        for rank in self.ranks[node.number] if self.ranks else []:
            if not (self.folder / f"exit-{rank}.json").exists():
                end = {
                    "pid": 0,
                    "exit_code": None,
                    "signal": int(signal.SIGKILL),
                    "at_ns": time.monotonic_ns(),
                    "code": code,
                    "message": message,
                }
                write_json(self.folder / f"exit-{rank}.json", end)

    def _last_words(self, node: Node) -> str:
        text = (self.folder / f"node-{node.number}.console").read_bytes()[-4096:].decode(errors="replace")
        said = [line.strip() for line in text.splitlines() if line.strip()]
        return next((line for line in said if "Kernel panic" in line), said[-1] if said else "")[:200]


def how(code: int) -> str:
    """A node's end in words."""
    return (
        f"was killed by {signal.Signals(-code).name}"
        if code < 0
        else f"powered off before its command had ended (code {code})"
    )
