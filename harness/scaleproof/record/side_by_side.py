"""The same work on many things by all cores, where what comes of it is put down on disk."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from typing import TypeVar

Item = TypeVar("Item")
LOOK_S = 0.2
"""How often a helper looks whether it still helps somebody."""


def side_by_side(items: Sequence[Item], work: Callable[[Sequence[Item]], None], cores: int) -> None:
    """Do `work` on a share of neighbouring items for each core: the first here, the others in forked processes, which
    have ended when this returns or raises. Nothing comes back but what `work` wrote down; a process that fails, or that
    there was no room for, leaves its share undone: whoever calls looks at what is there."""
    each = max(ceil(len(items) / max(cores, 1)), 1)
    shares = [items[start : start + each] for start in range(0, len(items), each)]
    helpers: list[int] = []
    try:
        with suppress(OSError):  # a limit of processes or of memory
            for share in shares[1:]:
                helpers.append(_fork(work, share))
        for share in shares[:1]:
            work(share)
        while helpers:
            os.waitpid(helpers[-1], 0)
            helpers.pop()
    finally:
        for helper in helpers:
            os.kill(helper, signal.SIGKILL)
        for helper in helpers:
            os.waitpid(helper, 0)


def _fork(work: Callable[[Sequence[Item]], None], share: Sequence[Item]) -> int:
    parent = os.getpid()
    helper = os.fork()
    if helper:
        return helper
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all of them without a word
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        work(share)
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)
