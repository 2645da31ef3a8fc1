"""Exchanges files with the coordinator from a node without a shared file system. With a shared folder only clocks are
compared."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json
from scaleproof.core.board import LINE
from scaleproof.launch.nodes.coordinator_link import PIECE, Link, LinkLost
from scaleproof.launch.nodes.received_files import KEYS, artifact_name, is_key, is_plain
from scaleproof.rank.status_publisher import processes_file

ROUNDS = 8
"""Comparisons of the clocks; the one with the shortest round trip counts."""
CLOCK_S = 10.0
BUSY_S, QUIET_S = 0.02, 0.1
"""How often to look at files while keys are being exchanged, and afterwards: looking takes a core from the ranks."""
CALM_S = 2.0
"""The exchange of keys counts as over after so long without a new key."""


class FileTransfer:
    """The file transfer of one node. `ranks`: the ranks of this node."""

    def __init__(self, folder: Path, link: Link, ranks: list[int], streamed: bool, node: int) -> None:
        self.folder, self.link, self.ranks, self.streamed, self.node = folder, link, ranks, streamed, node
        self.clock_replies: queue.Queue[tuple[int, int]] = queue.Queue()
        self._received: set[str] = set()
        """Files that came from the supervisor."""
        self._sent: dict[str, tuple[int, int]] = {}
        """Name to size and time as they were sent; of a log only the size counts."""
        self._lines: dict[int, bytes] = {}
        self._last_key_at = time.monotonic()
        if streamed:
            (folder / KEYS).mkdir(parents=True, mode=0o700)

    def clock_offset_ns(self) -> int:
        """What to add to this node's monotonic clock to get the supervisor's."""
        shortest, offset = 0, 0
        for _ in range(ROUNDS):
            sent = time.monotonic_ns()
            self.link.send("clock")
            try:
                supervisor_ns, returned = self.clock_replies.get(timeout=CLOCK_S)
            except queue.Empty:
                raise LinkLost(f"it did not send its time within {CLOCK_S:g} s") from None
            if not shortest or returned - sent < shortest:
                shortest, offset = returned - sent, supervisor_ns - (sent + returned) // 2
        return offset

    def receive(self, message: dict[str, Any], body: bytes) -> None:
        """Handle a message of the coordinator; called in the thread that listens."""
        if message["kind"] == "clock":
            self.clock_replies.put((int(message["now"]), time.monotonic_ns()))
        elif message["kind"] == "file" and (is_plain(name := str(message["name"])) or is_key(name)):
            self._received.add(name)
            path = self.folder / name
            draft = path.with_name(f".{path.name}.received")
            with draft.open("wb" if message["first"] else "ab") as file:
                file.write(body)
            if message["last"]:
                draft.rename(path)

    def start(self) -> None:
        """Called when the ranks have been started."""
        self._last_key_at = time.monotonic()

    def send_changes(self) -> float:
        """Send what has changed while ranks run: keys, lines of the board, states of processes, logs. Returns the
        seconds until the next call."""
        if not self.streamed:
            return QUIET_S
        # First of all: once the exit file of a rank exists, its other files are complete.
        ended = [rank for rank in self.ranks if self._is_new(f"exit-{rank}.json")]
        for entry in os.scandir(self.folder / KEYS):
            name = f"{KEYS}/{entry.name}"
            if is_key(name) and name not in self._received and name not in self._sent:
                self._send(name)
                self._last_key_at = time.monotonic()
        for rank in self.ranks:
            self._send_line(rank)
            self._send_log(f"rank-{rank}.log")
        self._send_changed(processes_file(self.folder, self.node).name)
        if ended:
            self._send_results(ended)
        return BUSY_S if time.monotonic() - self._last_key_at < CALM_S else QUIET_S

    def send_rest(self) -> None:
        """Send what has not been sent, when all processes of this node have ended."""
        if self.streamed:
            self.send_changes()
            self._send_results([rank for rank in self.ranks if self._is_new(f"exit-{rank}.json")])

    def _send_results(self, ended: list[int]) -> None:
        """Send the files of ranks that have ended, the exit file last."""
        for rank in self.ranks:
            self._send_changed(f"rank-{rank}.events")
        for rank in ended:
            self._send_changed(f"rank-{rank}.json")
            for name in self._artifacts(rank):
                self._send_changed(name, artifact_name(self.node, name))
            self._send_line(rank)
            self._send_log(f"rank-{rank}.log")
            self._send(f"exit-{rank}.json")

    def _artifacts(self, rank: int) -> Iterator[str]:
        """Names of the files of this folder that a rank's report lists as artifacts."""
        report = read_json(self.folder / f"rank-{rank}.json") or {}
        for path in map(Path, report.get("artifacts", {}).values()):
            if path.parent == self.folder and is_plain(path.name):
                yield path.name

    def _is_new(self, name: str) -> bool:
        return name not in self._sent and (self.folder / name).exists()

    def _send_line(self, rank: int) -> None:
        with (self.folder / "board").open("rb") as board:
            line = os.pread(board.fileno(), LINE, rank * LINE)
        if line != self._lines.get(rank):
            self.link.send("line", line, rank=rank)
            self._lines[rank] = line

    def _send_log(self, name: str) -> None:
        sent, _ = self._sent.get(name, (0, 0))
        path = self.folder / name
        if not path.exists() or (name in self._sent and path.stat().st_size <= sent):
            return
        if name not in self._sent:
            self.link.send("log", name=name)  # an empty log is sent too
        with path.open("rb") as log:
            log.seek(sent)
            while part := log.read(PIECE):
                self.link.send("log", part, name=name)
                sent += len(part)
        self._sent[name] = sent, 0

    def _send_changed(self, name: str, sent_name: str = "") -> None:
        try:
            state = (self.folder / name).stat()
        except FileNotFoundError:
            return
        if self._sent.get(name) != (state.st_size, state.st_mtime_ns):
            self._send(name, sent_name)

    def _send(self, name: str, sent_name: str = "") -> None:
        with (self.folder / name).open("rb") as file:
            state = os.fstat(file.fileno())
            self._sent[name] = state.st_size, state.st_mtime_ns
            send_file(self.link, sent_name or name, file.read)


def send_file(link: Link, name: str, read: Callable[[int], bytes]) -> None:
    """Send a file in pieces. `read(n)`: its next n bytes."""
    part, first = read(PIECE), True
    while True:
        following = read(PIECE) if len(part) == PIECE else b""
        link.send("file", part, name=name, first=first, last=not following)
        if not following:
            return
        part, first = following, False
