"""Python stacks of ranks: each rank writes its own with faulthandler; where it cannot (stopped, signals blocked),
py-spy reads them from its memory."""

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
from dataclasses import dataclass
from pathlib import Path

from scaleproof.launch.watch.rank_processes import Processes

ANSWER_S, ANSWER_NODES_S = 0.3, 1.0
"""Time for faulthandler to write all threads, which takes microseconds once the process runs. On nodes the request has
to travel first."""
SETTLED_S = 0.03
"""A log that has not grown for so long holds the complete stacks."""
SPY_S = 1.5
"""Time for py-spy over all ranks together; it starts in 0.03 s on an idle machine."""
LINES = 400
"""At most so many lines of one rank's stacks are kept."""
TAIL = 256 << 10
"""Bytes at the end of a log in which a traceback is searched."""
TRACEBACK, FATAL = "Traceback (most recent call last):", "Fatal Python error:"
_HEAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r"^  (File \"|<no Python frame>|\.\.\.)")


@dataclass(frozen=True, slots=True)
class Stack:
    """The lines of one rank's stacks, and why there are none."""

    lines: tuple[str, ...] = ()
    missing: str = ""


NO_STACK = Stack()


def read_stacks(folder: Path, pids: dict[int, int], processes: Processes) -> dict[int, Stack]:
    """Stacks of living ranks; `pids`: rank to process id. Stacks that py-spy reads are added to the ranks' logs. Takes
    2 s at most."""
    stopped = {rank for rank, pid in pids.items() if processes.state(rank, pid, ())[0] in ("T", "t")}
    on_nodes = processes.request_stacks(folder)
    written = _from_themselves(folder, {rank: pid for rank, pid in pids.items() if rank not in stopped}, on_nodes)
    stacks = {rank: Stack(tuple(lines)) for rank, lines in written.items() if lines}
    missing = {rank: pid for rank, pid in pids.items() if rank not in stacks}
    if on_nodes:
        from_memory = {rank: Stack(missing="its node's memory is not read from outside") for rank in missing}
    else:
        from_memory = _from_memory(missing)
    for rank, stack in from_memory.items():
        why = "the process is stopped" if rank in stopped else f"no answer to SIGUSR1 within {ANSWER_S:g} s"
        if stack.lines:
            _append(folder / f"rank-{rank}.log", [f"Stacks read by py-spy ({why}):", *stack.lines])
        stacks[rank] = stack if stack.lines else Stack(missing=f"{why}; {stack.missing}")
    return stacks


def traceback_in(log: Path) -> tuple[str, ...]:
    """From the log of a rank that has ended: the stacks that faulthandler wrote on a fatal signal, else the traceback
    that ended the rank, else nothing."""
    text = _read(log, max(_size(log) - TAIL, 0))
    if FATAL in text:
        return tuple(parse_faulthandler(text[text.rfind(FATAL) :]))
    start = text.rfind(TRACEBACK)
    return tuple(text[start:].splitlines()[:LINES]) if start >= 0 else ()


def parse_faulthandler(text: str) -> list[str]:
    """The lines of threads and frames in a piece of a log, without other output between them."""
    stack_lines: list[str] = []
    inside = False
    for line in text.splitlines():
        head = bool(_HEAD.match(line))
        inside = head or (inside and bool(_FRAME.match(line)))
        if inside:
            stack_lines.append(line)
    return stack_lines[:LINES]


def parse_spy(text: str, main: int) -> list[str]:
    """py-spy's JSON in the form of faulthandler, the thread with the number `main` first; ValueError for other text."""
    lines = []
    for thread in sorted(json.loads(text), key=lambda thread: thread["os_thread_id"] != main):
        name = f" {thread['thread_name']!r}" if thread["thread_name"] else ""
        lines.append(f"Thread {thread['os_thread_id']}{name} (most recent call first):")
        lines += [
            f'  File "{frame["filename"]}", line {frame["line"]} in {frame["name"]}' for frame in thread["frames"]
        ]
    return lines[:LINES]


def _from_themselves(folder: Path, pids: dict[int, int], on_nodes: bool) -> dict[int, list[str]]:
    logs = {rank: folder / f"rank-{rank}.log" for rank in pids}
    before = {rank: _size(log) for rank, log in logs.items()}
    for pid in pids.values() if not on_nodes else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGUSR1)
    until, settled = time.monotonic() + (ANSWER_NODES_S if on_nodes else ANSWER_S), 0.0
    sizes = dict(before)
    while pids and time.monotonic() < until:
        time.sleep(0.01)
        now = {rank: _size(log) for rank, log in logs.items()}
        settled = settled + 0.01 if now == sizes and all(now[rank] > before[rank] for rank in pids) else 0.0
        sizes = now
        if settled >= SETTLED_S:
            break
    return {rank: parse_faulthandler(_read(log, before[rank])) for rank, log in logs.items()}


def _from_memory(pids: dict[int, int]) -> dict[int, Stack]:
    program = _py_spy()
    if program is None:
        return {rank: Stack(missing="py-spy is not installed") for rank in pids}
    with _py_spies(program, pids) as spies:
        until = time.monotonic() + SPY_S
        return {rank: _spied(process, pids[rank], until) for rank, process in spies.items()}


@contextlib.contextmanager
def _py_spies(program: str, pids: dict[int, int]) -> Iterator[dict[int, subprocess.Popen[str]]]:
    spies = {
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
        yield spies
    finally:
        for process in spies.values():
            process.kill()
            process.communicate()


def _spied(process: subprocess.Popen[str], pid: int, until: float) -> Stack:
    try:
        output, errors = process.communicate(timeout=max(until - time.monotonic(), 0.01))
        lines = parse_spy(output, pid) if process.returncode == 0 else []
    except subprocess.TimeoutExpired:
        return Stack(missing=f"py-spy took longer than {SPY_S:g} s")
    except ValueError as error:
        return Stack(missing=f"py-spy: {error}")
    if lines:
        return Stack(tuple(lines))
    return Stack(missing="py-spy: " + (errors.strip().splitlines() or ["found no thread"])[0])


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
