"""On a node: brings to the supervisor what is written here, where no file system does. With a shared folder only clocks
are compared."""

from __future__ import annotations

import os
import queue
import time
from pathlib import Path
from typing import Any

from scaleproof.core.board import LINE
from scaleproof.launch.nodes.coordinator_link import PIECE, Link, LinkLost
from scaleproof.launch.nodes.received_files import is_safe
from scaleproof.rank.mirror import STACKS, processes_file

ROUNDS = 8
"""Questions about the clock; the one with the shortest way counts."""
CLOCK_S = 10.0
BUSY_S, QUIET_S = 0.02, 0.1
"""How often files are looked at while keys are being exchanged, and else: looking takes a core from the ranks."""
CALM_S = 2.0
"""After so long without a new key it is quiet."""
KEYS = "rendezvous"


class Courier:
    """One node's. `ranks`: those that run here."""

    def __init__(self, folder: Path, link: Link, ranks: list[int], streamed: bool, node: int) -> None:
        self.folder, self.link, self.ranks, self.streamed, self.node = folder, link, ranks, streamed, node
        self.replies: queue.Queue[tuple[int, int]] = queue.Queue()
        self._given: set[str] = set()
        """Files that came from the supervisor."""
        self._sent: dict[str, tuple[int, int]] = {}
        """Name to size and time as they were sent; of a log the size alone counts."""
        self._lines: dict[int, bytes] = {}
        self._moved = time.monotonic()
        if streamed:
            (folder / KEYS).mkdir(parents=True, mode=0o700)

    def clock(self) -> int:
        """Add it to the monotonic clock here to get the supervisor's (ns)."""
        best, offset = 0, 0
        for _ in range(ROUNDS):
            asked = time.monotonic_ns()
            self.link.send("clock")
            try:
                heard, returned = self.replies.get(timeout=CLOCK_S)
            except queue.Empty:
                raise LinkLost(f"it did not tell its time within {CLOCK_S:g} s") from None
            if not best or returned - asked < best:
                best, offset = returned - asked, heard - (asked + returned) // 2
        return offset

    def take(self, message: dict[str, Any], body: bytes) -> None:
        """What the keeper sent, in the thread that listens."""
        if message["kind"] == "clock":
            self.replies.put((int(message["now"]), time.monotonic_ns()))
        elif message["kind"] == "file" and is_safe(name := str(message["name"])):
            self._given.add(name)
            place = self.folder / name
            draft = place.with_name(f".{place.name}.courier")
            with draft.open("wb" if message["first"] else "ab") as file:
                file.write(body)
            if message["last"]:
                draft.rename(place)

    def start(self) -> None:
        """The ranks have been started."""
        self._moved = time.monotonic()

    def tick(self) -> float:
        """Send what is new while ranks run: keys, lines of the board, how processes fare, logs. Returns s until the
        next look."""
        if not self.streamed:
            return QUIET_S
        ended = [
            rank for rank in self.ranks if self._is_new(f"exit-{rank}.json")
        ]  # before what these ranks wrote is looked for
        for entry in os.scandir(self.folder / KEYS):
            name = f"{KEYS}/{entry.name}"
            if name not in self._given and name not in self._sent and not entry.name.startswith("."):
                self._send(name)
                self._moved = time.monotonic()
        for rank in self.ranks:
            self._send_line(rank)
            self._send_log(f"rank-{rank}.log")
        self._send_changed(processes_file(self.folder, self.node).name)
        if ended:
            self._deliver(ended)
        return BUSY_S if time.monotonic() - self._moved < CALM_S else QUIET_S

    def last(self) -> None:
        """All processes here have ended: whatever has not been sent."""
        if self.streamed:
            self.tick()
            self._deliver([rank for rank in self.ranks if self._is_new(f"exit-{rank}.json")])

    def _deliver(self, ended: list[int]) -> None:
        """What ranks that have ended wrote, the word of their end after all else."""
        for name in sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file()):
            if (
                name not in self._given
                and not name.startswith((".", "exit-"))
                and not name.endswith(".log")
                and name != STACKS
            ):
                self._send_changed(name)
        for rank in ended:
            self._send_line(rank)
            self._send_log(f"rank-{rank}.log")
            self._send(f"exit-{rank}.json")

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
            self.link.send("log", name=name)  # also one in which nothing will ever stand
        with path.open("rb") as log:
            log.seek(sent)
            while part := log.read(PIECE):
                self.link.send("log", part, name=name)
                sent += len(part)
        self._sent[name] = sent, 0

    def _send_changed(self, name: str) -> None:
        try:
            found = (self.folder / name).stat()
        except FileNotFoundError:
            return
        if self._sent.get(name) != (found.st_size, found.st_mtime_ns):
            self._send(name)

    def _send(self, name: str) -> None:
        path = self.folder / name
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            self._sent[name] = found.st_size, found.st_mtime_ns
            send_file(self.link, name, file.read)


def send_file(link: Link, name: str, read: Any) -> None:
    """A file in pieces. `read(n)`: its next bytes."""
    part, first = read(PIECE), True
    while True:
        following = read(PIECE) if len(part) == PIECE else b""
        link.send("file", part, name=name, first=first, last=not following)
        if not following:
            return
        part, first = following, False
