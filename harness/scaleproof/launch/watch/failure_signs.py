"""Watches the ranks of one launch from outside, and decides which of them failed first and how."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaleproof.core.board import Board
from scaleproof.core.killed_rank import is_gone
from scaleproof.launch.watch.idle_time import IdleTrace
from scaleproof.launch.watch.rank_processes import Here, Processes

LOOK_S = 0.25
"""How often the processes of ranks are looked at."""
STOPPED_S = 1.5
"""A process that has been stopped (SIGSTOP) for longer is a failure."""
SILENT_S = 12.0
"""A rank without heartbeat and without processor time for longer is a failure. A library may hold the interpreter's
lock while it waits for a peer that still imports: seconds on a machine with cold caches."""
BUSY = 0.05
"""Share of a core above which a process computes; threads that poll for the interpreter's lock use less."""
FAMILY_S = 4.0
"""After so much idle time of a rank, its child processes are looked at: one of them may work for it."""
_ABORTS = {signal.SIGABRT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP}
"""Signals by which a library ends its own process, often because a peer is gone."""
BLAMES_OTHERS = ("peer_lost", "transport_error", "rendezvous_timeout")


_ANOTHER_FAILURE, _ABORTED = 2, 3
"""Positions in the order of causes: a failure that the rank reports itself, and a rank that ended itself by a signal,
perhaps because another rank had failed."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of failure of a rank: failure code, when it happened or was noticed (monotonic ns), a message for people,
    the signal that ended the rank, what the rank was doing, which peer it lost, and which node failed."""

    code: str
    rank: int
    at_ns: int
    message: str
    signal: int | None = None
    step: int = -1
    operation: str = ""
    peer: int = -1
    node: str = ""

    @property
    def can_be_the_cause(self) -> bool:
        """Whether to wait only shortly for other signs: no other rank's failure explains this one, or it came late
        already (rank_silent)."""
        return self.order_as_cause()[0] < _ABORTED or self.code == "rank_silent"

    def order_as_cause(self) -> tuple[int, int]:
        """Sort key, the likeliest cause first: signs that cannot be the consequence of another rank's failure, then the
        earliest."""
        if self.code == "rank_killed":
            return (_ABORTED if self.signal in _ABORTS else 0), self.at_ns
        # No rank causes the loss of a node, and the program that started the ranks of all nodes may end the other
        # ranks before the loss is reported.
        order = {"node_lost": -1, "rank_stopped": 1, "rank_exited": 4, "rank_silent": 6}
        return (5 if self.code in BLAMES_OTHERS else order.get(self.code, _ANOTHER_FAILURE)), self.at_ns


@dataclass(slots=True)
class Life:
    """When a rank last did something, monotonic clock in s. `moved_at`: its line on the board changed; `worked_at`: it
    computed or read from disk."""

    mark: bytes = b""
    moved_at: float = 0.0
    worked_at: float = 0.0
    used_s: float | None = None
    read_bytes: int = 0
    family_s: float = 0.0
    family_at: float = float("inf")
    """When its child processes are looked at next: every second, from FAMILY_S after it last worked."""

    def look_at_line(self, mark: bytes, now: float) -> None:
        """The board's line without its beat."""
        if mark != self.mark:
            self.mark, self.moved_at = mark, now

    def look_at_work(self, processes: Processes, rank: int, pid: int, used_s: float, now: float) -> None:
        """`used_s`: processor time of the rank so far, in s."""
        if now > self.family_at:
            self.family_s, self.family_at = processes.family_s(rank, pid), now + 1.0
        used_s, read = used_s + self.family_s, processes.disk_bytes(rank, pid)
        if self.used_s is None or used_s - self.used_s > BUSY * (now - self.worked_at) or read != self.read_bytes:
            self.used_s, self.read_bytes, self.worked_at = used_s, read, now
            self.family_at = now + FAMILY_S


@dataclass(slots=True)
class Watch:
    """Polls exit files, reports, the board and /proc. `ends` and `reports`: contents of the exit files and reports that
    exist so far, by rank."""

    folder: Path
    board: Board
    processes: Processes = field(default_factory=Here)
    idle: IdleTrace = field(default_factory=IdleTrace)
    ends: dict[int, dict[str, Any]] = field(default_factory=dict)
    reports: dict[int, dict[str, Any]] = field(default_factory=dict)
    _stopped_since: dict[int, float] = field(default_factory=dict)
    _signs: dict[int, Sign] = field(default_factory=dict)
    _lives: dict[int, Life] = field(default_factory=dict)
    _looked: float = 0.0

    @property
    def ranks(self) -> range:
        """All ranks."""
        return range(self.board.world_size)

    def poll(self) -> list[Sign]:
        """All signs so far, at most one per rank."""
        self._read_ends()
        if time.monotonic() - self._looked > LOOK_S:
            self.idle.look()
            for rank in self.ranks:
                if rank not in self.ends and (pid := self.board.pid(rank)):
                    self._look_at_process(rank, pid)
            self._looked = time.monotonic()
        return list(self._signs.values())

    def all_ended(self) -> bool:
        """Whether every rank has ended, well or not."""
        return len(self.ends) == self.board.world_size

    def living(self) -> dict[int, int]:
        """Processes of ranks that have not ended."""
        return {rank: pid for rank in self.ranks if rank not in self.ends and (pid := self.board.pid(rank))}

    def still_s(self, rank: int) -> float:
        """How long a rank's line on the board has not changed, as precisely as it was polled."""
        life, now = self._life(rank), time.monotonic()
        life.look_at_line(self.board.mark(rank), now)
        return max(now - max(life.moved_at, self.board.read(rank).moved_ns / 1e9), 0.0)

    def idle_s(self) -> float:
        """For how long no rank has moved: no line has changed and no rank has computed or read from disk. A rank that
        waits may compute, since some libraries poll."""
        living = self.living()
        if len(living) + len(self.ends) < self.board.world_size:
            return 0.0
        return min((self._idle_s(rank) for rank in living), default=0.0)

    def _idle_s(self, rank: int) -> float:
        still_s = self.still_s(rank)
        waits = self.board.read(rank).waits_for is not None
        return still_s if waits else min(still_s, time.monotonic() - self._life(rank).worked_at)

    def _life(self, rank: int) -> Life:
        return self._lives.setdefault(rank, Life())

    def sign(self, code: str, rank: int, message: str) -> Sign:
        """A sign about a rank as it is now."""
        sign = Sign(code, rank, time.monotonic_ns(), message)
        return self._with_position(sign) if rank in self.ranks else sign

    def _read_ends(self) -> None:
        for rank in self.ranks:
            end = _json(self.folder / f"exit-{rank}.json") if rank not in self.ends else None
            if end is None:
                continue
            self.ends[rank] = end
            report = _json(self.folder / f"rank-{rank}.json")
            if report is not None:
                self.reports[rank] = report
            sign = None if is_gone(self.folder, rank) else ended_badly(rank, end, report)
            if sign is not None and rank not in self._signs:
                # The sign of a stopped rank is kept, however it ended after it was continued for its stacks.
                self._signs[rank] = self._with_position(sign)

    def _look_at_process(self, rank: int, pid: int) -> None:
        now = time.monotonic()
        state, used_s = self.processes.state(rank, pid, self.board.pollers(rank))
        life = self._life(rank)
        life.look_at_line(self.board.mark(rank), now)
        life.look_at_work(self.processes, rank, pid, used_s, now)
        if state not in ("T", "t"):
            self._stopped_since.pop(rank, None)
            # A library that computes while it holds the interpreter's lock stops the heartbeat but is not silent.
            silent_s = now - max(self.board.read(rank).beat_ns / 1e9, life.worked_at)
            if silent_s > SILENT_S:
                self._signs.setdefault(
                    rank, self.sign("rank_silent", rank, f"neither heartbeat nor processor time for {silent_s:.1f} s")
                )
            return
        since = self._stopped_since.setdefault(rank, now)
        if now - since > STOPPED_S:
            message = f"the process has been stopped (SIGSTOP or a debugger) for {now - since:.1f} s"
            self._signs.setdefault(rank, self.sign("rank_stopped", rank, message))

    def _with_position(self, sign: Sign) -> Sign:
        line = self.board.read(sign.rank)
        return replace(sign, step=line.step, operation=line.operation)


def ended_badly(rank: int, end: dict[str, Any], report: dict[str, Any] | None) -> Sign | None:
    """The sign of a rank that has ended, from its exit file and report; None when it ended well."""
    at = int(end["at_ns"])
    if "code" in end:  # written by the coordinator for a rank of a node that cannot report
        return Sign(end["code"], rank, at, end["message"], end["signal"], node=end.get("node", ""))
    if end["signal"] is not None:
        return Sign("rank_killed", rank, at, f"killed by {signal_name(end['signal'])}", end["signal"])
    if report is not None and report["status"] != "ok":
        return Sign(report["code"], rank, at, report["message"], peer=report.get("peer", -1))
    if report is None or end["exit_code"] != 0:
        return Sign(
            "rank_exited", rank, at, f"exited with code {end['exit_code']}" + ("" if report else " and left no report")
        )
    return None


def root_cause(signs: list[Sign]) -> Sign:
    """The sign that the others follow from."""
    return min(signs, key=Sign.order_as_cause)


def signal_name(number: int) -> str:
    """SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _json(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return content
