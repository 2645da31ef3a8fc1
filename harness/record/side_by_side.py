"""The same work on many things by all cores, where what comes of it is put down on disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def side_by_side(items: Sequence[Item], work: Callable[[Sequence[Item]], None], cores: int) -> None:
    """Do `work` on a share of the items for each core: the first here, the others in forked processes, which have ended when this returns. Nothing comes back
    but what `work` wrote down; a process that fails leaves its share undone and says nothing: whoever calls looks at what is there."""
    shares = [list(items[core::cores]) for core in range(cores)]
    helpers = [_fork(work, share) for share in shares[1:] if share]
    try:
        work(shares[0])
    except BaseException:
        for helper in helpers:
            os.kill(helper, signal.SIGKILL)
        raise
    finally:
        for helper in helpers:
            os.waitpid(helper, 0)


def _fork(work: Callable[[Sequence[Item]], None], share: Sequence[Item]) -> int:
    helper = os.fork()
    if helper:
        return helper
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all of them without a word
        work(share)
    finally:
        os._exit(0)
