"""The nodes of one launch as the coordinator knows them, shared by its threads."""

from __future__ import annotations

import io
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import write_json
from scaleproof.launch.nodes.coordinator_link import Link, LinkLost
from scaleproof.launch.nodes.file_transfer import send_file
from scaleproof.launch.nodes.received_files import ReceivedFiles


@dataclass(slots=True)
class NodeState:
    """One node. `exit_code`: of what it ran; None while that runs, or when the node never reported it. `over`: it has
    said goodbye, or is lost."""

    number: int
    name: str
    files: ReceivedFiles
    link: Link | None = None
    exit_code: int | None = None
    over: bool = False
    ready: bool = False
    starter: int = 0
    """Which of the programs that start agents started its agent."""


@dataclass(slots=True)
class LaunchNodes:
    """All nodes of one launch."""

    folder: Path
    states: list[NodeState]
    ending: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def all_done(self) -> bool:
        """Whether every node has ended what it ran, or is over."""
        return all(node.exit_code is not None or node.over for node in self.states)

    def all_left(self) -> bool:
        """Whether every node that ever had a connection has said goodbye, or is lost."""
        return all(node.over or node.link is None for node in self.states)

    def send(self, kind: str, **fields: Any) -> None:
        """A message to all nodes that are connected."""
        for node in self._connected():
            if node.link is not None:
                with suppress(LinkLost):  # the thread that receives from the node reports it
                    node.link.send(kind, **fields)

    def send_file(self, name: str, content: bytes, source: NodeState | None = None) -> None:
        """A file to all nodes that are connected, except the one that it came from."""
        for node in self._connected():
            if node is not source and node.link is not None:
                with suppress(LinkLost):
                    send_file(node.link, name, io.BytesIO(content).read)

    def lose(self, node: NodeState, code: str, how: str) -> None:
        """Write exit files for the ranks of a node that cannot report how they ended."""
        with self.lock:
            if node.over or self.ending.is_set():
                return
            node.over = True
        message = f"node {node.name}: {how}"
        print(message, flush=True)
        for rank in node.files.ranks:
            path = self.folder / f"exit-{rank}.json"
            if not path.exists():
                write_json(path, exit_of_unseen_rank(code, message, node.name))

    def _connected(self) -> list[NodeState]:
        return [node for node in self.states if node.link is not None and not node.over]


def exit_of_unseen_rank(code: str, message: str, node: str) -> dict[str, Any]:
    """The exit file of a rank whose parent did not report how it ended. Code decides by `code` and `node`; the message
    is for people."""
    return {
        "pid": 0,
        "exit_code": None,
        "signal": int(signal.SIGKILL),
        "at_ns": time.monotonic_ns(),
        "code": code,
        "message": message,
        "node": node,
    }
