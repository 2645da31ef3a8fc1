"""Ends a process when its creator ends. `python -m scaleproof.rank.process_lifetime CREATOR COMMAND...` does so for any
command."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def die_with_creator(creator: int) -> None:
    """SIGKILL this process when `creator` (its parent) ends, also when it ended before this call."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != creator:
        os.kill(os.getpid(), signal.SIGKILL)


def ending_with_this_process(command: Sequence[str]) -> list[str]:
    """The command that runs `command` in a process of its own and ends it when this process ends."""
    return [sys.executable, "-m", "scaleproof.rank.process_lifetime", str(os.getpid()), *command]


def adopt_orphans(adopt: bool = True) -> None:
    """Orphans below this process become its children, so that it can reap them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(adopt))


if __name__ == "__main__":
    die_with_creator(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
