"""A collective loop in which one rank fails at a step, both drawn from the launch's seed. Arms named `healthy` do not
fail."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave

STEPS = 40
OF_ALL = ("deadlock",)
"""Faults that every rank has: here both wait for a message that the other one never sends."""


def fault_of(seed: int, ranks: int) -> tuple[int, int]:
    """Rank and step of the fault."""
    drawn = random.Random(seed)
    return drawn.randrange(ranks), drawn.randrange(STEPS)


def run(context: RankContext) -> None:
    """All-reduce STEPS times."""
    group = open_group(context)
    try:
        data = np.ones(4096, np.float32)
        rank, step = fault_of(context.seed, context.world_size)
        for number in range(STEPS):
            context.at(number, "all_reduce")
            fault = os.environ["FAULT"]
            if context.case.arm != "healthy" and number == step and (context.rank == rank or fault in OF_ALL):
                fail(context, group, fault)
            start = now()
            group.all_reduce(data).wait()
            data /= context.world_size
            context.recorder.add("all_reduce", number, start, now(), data.nbytes)
        context.check("sum", bool(np.all(data == 1)))
        # A signal drawn at the last steps must still find the rank alive, and the other one waiting.
        time.sleep(0 if context.case.arm == "healthy" else 0.05)
        group.barrier()
    finally:
        leave(context, group)


def fail(context: RankContext, group: Any, fault: str) -> None:
    """Note the time and fail; signals come from a thread, a moment later, so that they hit in the middle of whatever
    the rank does then."""
    (Path(os.environ["FAULT_FOLDER"]) / context.launch_id).write_text(str(time.monotonic()))
    if fault in ("SIGKILL", "SIGSTOP", "SIGSEGV"):
        threading.Thread(
            target=_signal_later, args=(signal.Signals[fault], random.uniform(0, 0.002)), daemon=True
        ).start()
    elif fault == "raise":
        raise ValueError("a fault on purpose")
    elif fault == "exit":
        os._exit(3)
    elif fault == "hang":
        context.at(context.board.read(context.rank).step, "input")
        time.sleep(60)
    elif fault == "lock":
        # usleep through PyDLL keeps the interpreter's lock, as a careless C extension does.
        context.at(context.board.read(context.rank).step, "input")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        ctypes.PyDLL(None).usleep(60_000_000)
    elif fault == "sleep in C":
        ctypes.CDLL(None).sleep(60)
    elif fault == "wait in Python":
        wait_for_nobody()
    elif fault == "deadlock":
        group.transport.recv(np.empty(1, np.uint8), 1 - context.rank).wait()
    elif fault == "compute":
        until = time.monotonic() + 2.2
        while time.monotonic() < until:
            np.ones(1000).sum()
    elif fault == "child computes":
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 2: pass"], check=True)
    elif fault == "check":
        context.check("sum", False, "1 of 1 values differ")
    elif fault == "fill":
        _fill(context.folder)


def wait_for_nobody() -> None:
    """A lock that nobody will release."""
    threading.Event().wait()


def _signal_later(number: signal.Signals, after_s: float) -> None:
    time.sleep(after_s)
    os.kill(os.getpid(), number)


def _fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            return
