"""Publishes the state of ranks on a node with its own kernel, in files of the launch's folder: the supervisor cannot
see these processes."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from scaleproof.core import location
from scaleproof.core.atomic_write import write_json
from scaleproof.core.board import LINE, Board
from scaleproof.record.process import disk_bytes, family_s, process_state

EVERY_S = 0.1
LOOKS = 3
"""The state of processes is read in every third round only, since that takes longer than reading the board."""
STACKS = "stacks-wanted"
"""File by which the supervisor requests the stacks of all ranks; each new content is a new request."""
_TIMES = struct.Struct("<qq")


def processes_file(folder: Path, node: int) -> Path:
    """The file of a node that maps each rank to state, processor time and bytes read."""
    return folder / f"processes-{node}.json"


class StatusPublisher:
    """Copies the board's lines of this node's ranks, writes the state of their processes, forwards requests for stacks,
    and copies their events at their end."""

    def __init__(self, folder: Path, world_size: int) -> None:
        self.folder, self.mapped = folder, location.mapped(folder)
        self.mapped.mkdir(parents=True, exist_ok=True)
        self.board = Board(self.mapped / "board", world_size)
        self.ranks: dict[int, int] = {}
        self._others_ranks: tuple[int, ...] = ()
        self._stacks_request = self._read_stacks_request()

    def start(self, ranks: dict[int, int]) -> None:
        """Start the publishing thread; call it after the last fork. `ranks`: rank to pid."""
        self.ranks = dict(ranks)
        threading.Thread(target=self._run, name="status", daemon=True).start()

    def publish_ranks_of_others(self, ranks: Sequence[int]) -> None:
        """Start the publishing thread for ranks that another process starts on this node; each is published from its
        first line on the board."""
        self._others_ranks = tuple(ranks)
        self.start({})

    def publish_end(self, rank: int) -> None:
        """Publish the events and the last line of a rank that has ended."""
        with suppress(FileNotFoundError):
            shutil.copyfile(self.mapped / f"rank-{rank}.events", self.folder / f"rank-{rank}.events")
        self._copy_line(rank)

    def _run(self) -> None:
        turn = 0
        while True:
            if self._others_ranks:
                self.ranks = {rank: pid for rank in self._others_ranks if (pid := self.board.pid(rank))}
            for rank in self.ranks:
                self._copy_line(rank)
            if turn % LOOKS == 0:
                states = {str(rank): self._state(rank, pid) for rank, pid in self.ranks.items()}
                write_json(processes_file(self.folder, location.node() or 0), states)
            request = self._read_stacks_request()
            if request != self._stacks_request:
                self._stacks_request = request
                for pid in self.ranks.values():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGUSR1)
            turn += 1
            time.sleep(EVERY_S)

    def _copy_line(self, rank: int) -> None:
        """Write this rank's line into the board that all nodes share, with its two times on the supervisor's clock."""
        line = bytearray(self.board.line(rank))
        beat, moved = _TIMES.unpack_from(line)
        shift = location.to_supervisor_ns()
        _TIMES.pack_into(line, 0, beat + shift if beat else 0, moved + shift if moved else 0)
        with (self.folder / "board").open("r+b", buffering=0) as shared:
            os.pwrite(shared.fileno(), line, rank * LINE)

    def _state(self, rank: int, pid: int) -> dict[str, str | float]:
        state, used_s = process_state(pid)
        used_s -= sum(process_state(pid, thread)[1] for thread in self.board.pollers(rank))
        return {"state": state, "used_s": used_s + family_s(pid), "read_bytes": disk_bytes(pid)}

    def _read_stacks_request(self) -> str:
        path = self.folder / STACKS
        return path.read_text() if path.exists() else ""
