"""How the time of replayed compute passes: a rank sleeps and leaves its core to others, or takes the core."""

from __future__ import annotations

import ctypes
import hashlib
import time
from time import monotonic_ns as now
from typing import Protocol

SECOND = 1e9
_PR_SET_TIMERSLACK = 29
SLACK_NS = 1
"""By how much the kernel may delay a timer of this thread to combine it with others; Linux's default is 50,000."""
CHUNK_NBYTES = 1 << 16
"""Bytes per digest, tens of microseconds: meanwhile other threads of the process may run, as beside a framework's
operations."""


class Pace(Protocol):
    """A clock and a way to let its time pass, in ns."""

    def now(self) -> int: ...
    def wait_until(self, moment: int) -> None: ...


class Sleep:
    """Time passes by itself. Sleeps end on time instead of up to 50 us late."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(SLACK_NS), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_TIMERSLACK)")

    def now(self) -> int:
        """See Pace."""
        return now()

    def wait_until(self, moment: int) -> None:
        """See Pace."""
        remaining = moment - now()
        if remaining > 0:
            time.sleep(remaining / SECOND)


class Burn:
    """Time is this thread's on a core: what takes the core meanwhile makes compute longer, as it makes real compute."""

    def __init__(self) -> None:
        self._data = bytes(CHUNK_NBYTES)

    def now(self) -> int:
        """See Pace."""
        return time.thread_time_ns()

    def wait_until(self, moment: int) -> None:
        """See Pace; releases the interpreter while it digests."""
        while time.thread_time_ns() < moment:
            hashlib.sha256(self._data).digest()
