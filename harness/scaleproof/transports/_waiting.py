"""How a rank waits on memory: spin shortly, then give the core away, then sleep and tell so; and it notices when the
peer dies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scaleproof.core.board import Post

_sched_yield = ctypes.CDLL(None).sched_yield
"""Through ctypes because it releases the interpreter lock around the call; os.sched_yield of Python 3.11 keeps it."""

SPINS, CROWDED_SPINS = 100, 5
"""Looks before the core is offered; fewer where the peer may need this very core."""
YIELD_NS = 1_000_000
CHECK_NS = 2_000_000
SLEEP_S = (20e-6, 500e-6)


def wait_until(
    ready: Callable[[], bool],
    check: Callable[[], None],
    spins: int,
    post: Post,
    peer: int,
    sleep: Callable[[float], None] = time.sleep,
    yield_ns: int = YIELD_NS,
    moved: Callable[[], int] = lambda: 0,
) -> None:
    """Return when `ready()`; `check()` is called every few milliseconds and raises when waiting has become hopeless.
    Only who sleeps says that it waits; `sleep` may return before its seconds are over, when something has happened;
    before `yield_ns` have passed the core is only offered to others. `moved()` changes while bytes move: one call may
    take longer than a rank may stand still, so that who waits tells it again then."""
    for _ in range(spins):
        if ready():
            return
    start = checked = time.monotonic_ns()
    pause, told, seen = SLEEP_S[0], False, 0
    while not ready():
        now = time.monotonic_ns()
        if now - checked > CHECK_NS:
            checked = now
            try:
                check()
            except Exception:
                # What we wait for may have been published between the last look and the peer's end.
                if not ready():
                    raise
        if now - start < yield_ns:
            _sched_yield()
        else:
            if not told or moved() != seen:
                post.wait(peer)
                told, seen = True, moved()
            sleep(pause)
            pause = min(2 * pause, SLEEP_S[1])
    if told:
        post.go_on()
