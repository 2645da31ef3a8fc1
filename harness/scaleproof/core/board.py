"""The board: a page of memory per launch with a line per rank: heartbeat, step, operation, collective call and round,
and the rank that it waits for.

Ranks write it, and the supervisor reads it, also after a rank has died: it is the launch's flight recorder
(docs/watchdog.md).
"""

from __future__ import annotations

import mmap
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scaleproof.core import location

LINE = 256
"""Bytes: four cache lines, so that no two ranks write into one."""
_FORMAT = struct.Struct("<qqqq16s40s")
_WORDS = LINE // 8
_PID, _CALL, _ENDED, _ROUND, _MAIN, _HELPER = range(11, 17)
_POLLERS = 24
"""Indices of the 8-byte words behind the fields of _FORMAT. From _HELPER on there is a word for each channel."""
_HELPERS, _POLLERS_KEPT = _POLLERS - _HELPER, _WORDS - _POLLERS
_PEER_BITS = 20
CALLS = ("", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "send", "recv")
_CODES = {name: code for code, name in enumerate(CALLS)}
State = Literal["starting", "running", "done"]


@dataclass(frozen=True, slots=True)
class Line:
    """What one rank wrote last: monotonic time of its heartbeat in ns, step (-1: before the first), state, operation,
    and the `peer` that the program named (-1: none).

    `calls`: collective calls that have begun, of which `call` is the last; `calls_left`: those that have ended;
    `round`: the round of the engine; all of the first channel. `main` and `helper`: the ranks that the main thread and
    another thread (of the first channel that waits) wait for; None: no rank, -1: a rank that only the library knows.
    """

    beat_ns: int
    moved_ns: int
    step: int
    peer: int
    state: str
    operation: str
    call: str
    calls: int
    calls_left: int
    round: int
    main: int | None
    helper: int | None

    @property
    def waits_for(self) -> int | None:
        """The rank that this rank waits for; what a helper thread waits for counts once the main thread waits too."""
        return self.helper if self.main == -1 and self.helper is not None else self.main

    @property
    def doing(self) -> str:
        """The operation, and the collective call that has not ended."""
        if self.calls == self.calls_left:
            return self.operation
        name = "" if self.call in self.operation else f"{self.call} "
        return "; ".join(
            filter(None, (self.operation, f"{name}call {self.calls}" + (f" round {self.round}" if self.round else "")))
        )


class Board:
    """The lines of all ranks, in a file that the supervisor makes and all ranks map."""

    def __init__(self, path: Path, world_size: int) -> None:
        self.world_size = world_size
        if not path.exists():
            path.write_bytes(bytes(LINE * world_size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), LINE * world_size)
        self._words = memoryview(self._memory).cast("q")

    def write(self, rank: int, *, step: int, operation: str, peer: int = -1, state: State = "running") -> None:
        """Say what this rank does now."""
        now = time.monotonic_ns()
        _FORMAT.pack_into(self._memory, rank * LINE, now, now, step, peer, state.encode(), operation.encode()[:40])
        self._words[rank * _WORDS + _MAIN] = 0

    def enrol(self, rank: int) -> None:
        """Write this process's id into the rank's line."""
        self._words[rank * _WORDS + _PID] = location.pid()
        self.beat(rank)

    def pid(self, rank: int) -> int:
        """The process id of a rank; 0 before it has enrolled."""
        return self._words[rank * _WORDS + _PID]

    def beat(self, rank: int) -> None:
        """Write a heartbeat: this rank's process still runs."""
        self._words[rank * _WORDS] = time.monotonic_ns()

    def post(self, rank: int) -> Post:
        """The rank's line, for collectives and transports to write. Call it on the rank's main thread."""
        return Post(self._words[rank * _WORDS : (rank + 1) * _WORDS])

    def read(self, rank: int) -> Line:
        """A rank's line."""
        beat, moved, step, peer, state, operation = _FORMAT.unpack_from(self._memory, rank * LINE)
        numbers = self._words[rank * _WORDS : (rank + 1) * _WORDS].tolist()
        calls, code = divmod(numbers[_CALL], len(CALLS))
        return Line(
            beat,
            moved,
            step,
            peer,
            _text(state) or "starting",
            _text(operation),
            CALLS[code],
            calls,
            numbers[_ENDED],
            numbers[_ROUND],
            _peer(numbers[_MAIN]),
            _peer(next(filter(None, numbers[_HELPER:_POLLERS]), 0)),
        )

    def pollers(self, rank: int) -> list[int]:
        """Threads of the rank that poll while a library waits."""
        return [thread for thread in self._words[rank * _WORDS + _POLLERS : (rank + 1) * _WORDS] if thread]

    def mark(self, rank: int) -> bytes:
        """A line without its heartbeat: it changes when the rank moves."""
        return self._memory[rank * LINE + 8 : (rank + 1) * LINE]

    def line(self, rank: int) -> bytes:
        """The bytes of a rank's line, which begin with the times `beat_ns` and `moved_ns`."""
        return self._memory[rank * LINE : (rank + 1) * LINE]

    def close(self) -> None:
        """Unmap the board; its posts cannot be used afterwards."""
        self._words.release()
        self._memory.close()


class Post:
    """The reports of collectives and transports. Each report writes one word of memory, without a clock, text or
    allocation."""

    __slots__ = ("_begun", "_ended", "_helper", "_main", "_waits", "_words")

    def __init__(self, memory: memoryview) -> None:
        self._words = memory
        self._helper = _HELPER
        self._main = threading.get_ident()
        self._begun = self._ended = self._waits = 0

    def of_channel(self, number: int) -> Post:
        """For a further channel of this rank, whose thread waits at the same time. From the eighth on they share a
        word."""
        return _ChannelPost(self._words, _HELPER + min(number, _HELPERS - 1))

    def begin_call(self, call: str) -> None:
        """A collective call begins."""
        self._begun += 1
        self._words[_ROUND] = 0
        self._words[_CALL] = self._begun * len(CALLS) + _CODES[call]

    def end_call(self) -> None:
        """The oldest collective call that has not ended ends."""
        self._ended += 1
        self._words[_ENDED] = self._ended

    def round(self, number: int) -> None:
        """The engine begins this round of the call, counted from 1."""
        self._words[_ROUND] = number

    def wait(self, peer: int = -1) -> None:
        """This thread begins to wait for a peer (-1: for a rank that only the library knows). A repeated report counts
        as progress."""
        self._waits += 1
        self._words[_MAIN if threading.get_ident() == self._main else self._helper] = self._waits << _PEER_BITS | (
            peer + 2
        )

    def polls(self, threads: list[int]) -> None:
        """These threads (by the kernel's ids) belong to a library that polls: their processor time does not count as
        work."""
        for index, thread in enumerate(location.threads(threads)[:_POLLERS_KEPT]):
            self._words[_POLLERS + index] = thread

    def stop_waiting(self) -> None:
        """This thread no longer waits. Not called when waiting failed, so that the line of a rank that lost its peer
        still names the peer."""
        self._words[_MAIN if threading.get_ident() == self._main else self._helper] = 0


class _ChannelPost(Post):
    """Reports waiting alone: calls are counted, and their rounds shown, on the first channel."""

    __slots__ = ()

    def __init__(self, memory: memoryview, helper: int) -> None:
        super().__init__(memory)
        self._helper = helper

    def begin_call(self, call: str) -> None:
        """Not counted."""

    def end_call(self) -> None:
        """Not counted."""

    def round(self, number: int) -> None:
        """Not shown."""


def _peer(word: int) -> int | None:
    return (word & ((1 << _PEER_BITS) - 1)) - 2 if word else None


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode(errors="replace")
