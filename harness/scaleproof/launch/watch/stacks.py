"""Python stacks of ranks from outside: each writes its own with faulthandler; for one that cannot (stopped, signals
blocked), py-spy reads its memory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from scaleproof.launch.watch.rank_processes import Processes

ANSWER_S, ANSWER_NODES_S = 0.3, 1.0
"""Time for faulthandler to write all threads; it needs microseconds once the process runs. On nodes the wish travels
first."""
SETTLED_S = 0.03
"""A log that has not grown for so long holds the whole answer."""
SPY_S = 1.5
"""Time for py-spy over all ranks that it is asked about; it starts in 0.03 s on an idle machine."""
LINES = 400
"""Kept of one rank's stacks."""
TAIL = 256 << 10
"""Bytes at the end of a log in which last words are looked for."""
TRACEBACK, FATAL = "Traceback (most recent call last):", "Fatal Python error:"
_HEAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r"^  (File \"|<no Python frame>|\.\.\.)")


def take(folder: Path, pids: dict[int, int], processes: Processes) -> dict[int, list[str]]:
    """Stacks of the ranks whose processes are given, also added to their logs; a line that begins with `no stack` says
    why there is none. Takes 2 s at most."""
    stopped = {rank for rank, pid in pids.items() if processes.state(rank, pid, ())[0] in ("T", "t")}
    asked = processes.ask_for_stacks(folder)
    found = _from_themselves(folder, {rank: pid for rank, pid in pids.items() if rank not in stopped}, asked)
    missing = {rank: pid for rank, pid in pids.items() if not found.get(rank)}
    unread = (
        {rank: ([], "its node's memory is not read from outside") for rank in missing}
        if asked
        else _from_memory(missing)
    )
    for rank, (lines, reason) in unread.items():
        why = "the process is stopped" if rank in stopped else f"no answer to SIGUSR1 within {ANSWER_S:g} s"
        if lines:
            _append(folder / f"rank-{rank}.log", [f"Stacks read by py-spy ({why}):", *lines])
        found[rank] = lines or [f"no stack: {why}; {reason}"]
    return found


def last_words(log: Path) -> list[str]:
    """Of a rank that has ended: the stacks that faulthandler wrote on a fatal signal, else the traceback that ended it,
    else nothing."""
    text = _read(log, max(_size(log) - TAIL, 0))
    start = text.rfind(TRACEBACK)
    return (
        parse_faulthandler(text[text.rfind(FATAL) :])
        if FATAL in text
        else text[start:].splitlines()[:LINES]
        if start >= 0
        else []
    )


def parse_faulthandler(text: str) -> list[str]:
    """The threads and frames in a piece of a log, what else was printed meanwhile left out."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        head = bool(_HEAD.match(line))
        inside = head or (inside and bool(_FRAME.match(line)))
        if inside:
            found.append(line)
    return found[:LINES]


def parse_spy(text: str, main: int) -> list[str]:
    """py-spy's JSON in faulthandler's words, the thread with the number `main` first; raises ValueError when it is
    none."""
    found = []
    for thread in sorted(json.loads(text), key=lambda thread: thread["os_thread_id"] != main):
        name = f" {thread['thread_name']!r}" if thread["thread_name"] else ""
        found.append(f"Thread {thread['os_thread_id']}{name} (most recent call first):")
        found += [
            f'  File "{frame["filename"]}", line {frame["line"]} in {frame["name"]}' for frame in thread["frames"]
        ]
    return found[:LINES]


def _from_themselves(folder: Path, pids: dict[int, int], asked: bool) -> dict[int, list[str]]:
    logs = {rank: folder / f"rank-{rank}.log" for rank in pids}
    before = {rank: _size(log) for rank, log in logs.items()}
    for pid in pids.values() if not asked else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGUSR1)
    until, settled = time.monotonic() + (ANSWER_NODES_S if asked else ANSWER_S), 0.0
    sizes = dict(before)
    while pids and time.monotonic() < until:
        time.sleep(0.01)
        now = {rank: _size(log) for rank, log in logs.items()}
        settled = settled + 0.01 if now == sizes and all(now[rank] > before[rank] for rank in pids) else 0.0
        sizes = now
        if settled >= SETTLED_S:
            break
    return {rank: parse_faulthandler(_read(log, before[rank])) for rank, log in logs.items()}


def _from_memory(pids: dict[int, int]) -> dict[int, tuple[list[str], str]]:
    """Lines, or why there are none."""
    program = _py_spy()
    if program is None:
        return {rank: ([], "py-spy is not installed") for rank in pids}
    with _asked(program, pids) as asked:
        until = time.monotonic() + SPY_S
        return {rank: _answer(process, pids[rank], until) for rank, process in asked.items()}


@contextlib.contextmanager
def _asked(program: str, pids: dict[int, int]) -> Iterator[dict[int, subprocess.Popen[str]]]:
    asked = {
        rank: subprocess.Popen(
            [program, "dump", "--nonblocking", "--json", "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, pid in pids.items()
    }
    try:
        yield asked
    finally:
        for process in asked.values():
            process.kill()
            process.communicate()


def _answer(process: subprocess.Popen[str], pid: int, until: float) -> tuple[list[str], str]:
    try:
        output, errors = process.communicate(timeout=max(until - time.monotonic(), 0.01))
        lines = parse_spy(output, pid) if process.returncode == 0 else []
    except subprocess.TimeoutExpired:
        return [], f"py-spy took longer than {SPY_S:g} s"
    except ValueError as error:
        return [], f"py-spy: {error}"
    return lines, "py-spy: " + (errors.strip().splitlines() or ["found no thread"])[0]


def _py_spy() -> str | None:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def _append(log: Path, lines: list[str]) -> None:
    with contextlib.suppress(OSError), log.open("a") as file:
        file.write("\n".join(["", *lines, ""]))


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _read(log: Path, start: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")
    except OSError:
        return ""
