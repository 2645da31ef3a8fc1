"""The coordinator's state of the nodes of one launch, shared by its threads."""

from __future__ import annotations

import io
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaleproof.core.rank_exit import write_missing_exits
from scaleproof.launch.nodes.coordinator_link import Link, LinkLost
from scaleproof.launch.nodes.file_transfer import send_file
from scaleproof.launch.nodes.received_files import ReceivedFiles


@dataclass(slots=True)
class NodeState:
    """One node. `exit_code`: of the node's command; None while the command runs, or when the node never reported it.
    `over`: the node has sent its goodbye, or is lost."""

    number: int
    name: str
    files: ReceivedFiles
    link: Link | None = None
    exit_code: int | None = None
    over: bool = False
    ready: bool = False
    starter: int = 0
    """Index of the program that started its agent."""


@dataclass(slots=True)
class LaunchNodes:
    """All nodes of one launch."""

    folder: Path
    states: list[NodeState]
    ending: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def all_done(self) -> bool:
        """Whether every node's command has ended, or the node is over."""
        return all(node.exit_code is not None or node.over for node in self.states)

    def all_left(self) -> bool:
        """Whether every node that ever had a connection has sent its goodbye, or is lost."""
        return all(node.over or node.link is None for node in self.states)

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message to all nodes that are connected."""
        for node in self._connected():
            if node.link is not None:
                with suppress(LinkLost):  # the thread that receives from the node reports it
                    node.link.send(kind, **fields)

    def send_file(self, name: str, content: bytes, source: NodeState | None = None) -> None:
        """Send a file to all nodes that are connected, except the node that it came from."""
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
        write_missing_exits(self.folder, node.files.ranks, code=code, message=message, node=node.name)

    def _connected(self) -> list[NodeState]:
        return [node for node in self.states if node.link is not None and not node.over]
