"""How a rank waits on memory: spin shortly, then give the core away, then sleep; and it notices when the peer dies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

_sched_yield = ctypes.CDLL(None).sched_yield
"""Through ctypes because it releases the interpreter lock around the call; os.sched_yield of Python 3.11 keeps it."""

SPINS, CROWDED_SPINS = 100, 5
"""Looks before the core is offered; fewer where the peer may need this very core."""
YIELD_NS = 1_000_000
CHECK_NS = 2_000_000
SLEEP_S = (20e-6, 500e-6)


def wait_until(ready: Callable[[], bool], check: Callable[[], None], spins: int) -> None:
    """Return when `ready()`; `check()` is called every few milliseconds and raises when waiting has become hopeless."""
    for _ in range(spins):
        if ready():
            return
    start = checked = time.monotonic_ns()
    pause = SLEEP_S[0]
    while not ready():
        now = time.monotonic_ns()
        if now - checked > CHECK_NS:
            checked = now
            try:
                check()
            except Exception:
                # What we wait for may have been published between the last look and the peer's end.
                if ready():
                    return
                raise
        if now - start < YIELD_NS:
            _sched_yield()
        else:
            time.sleep(pause)
            pause = min(2 * pause, SLEEP_S[1])
