"""Waits until memory changes: spins briefly, then yields the core, then sleeps and reports that on the board. Notices
when the peer dies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scaleproof.core.board import Post

yield_core = ctypes.CDLL(None).sched_yield
"""Through ctypes because it releases the interpreter lock around the call; os.sched_yield of Python 3.11 keeps it."""

SPINS, CROWDED_SPINS = 100, 5
"""Polls before the core is yielded; fewer if the peer may need this core."""
YIELD_NS = 1_000_000
"""How long the rank only yields its core before it sleeps."""
CHECK_NS = 2_000_000
"""Time between two checks of the peer."""
SLEEP_MIN_S, SLEEP_MAX_S = 20e-6, 500e-6


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
    """Call `ready` until it returns True.

    `check` is called every few milliseconds and raises when waiting is pointless (PeerLost). For the first `yield_ns`
    the rank only yields its core to other processes; then it sleeps, and reports on its board line that it waits for
    `peer`. `sleep` may return early when something has happened. `moved` returns a number that changes while bytes
    move. One call may take longer than the watchdog allows a rank to stand still, so the rank reports again whenever
    that number changes.
    """
    for _ in range(spins):
        if ready():
            return
    start = checked = time.monotonic_ns()
    pause, reported, last_moved = SLEEP_MIN_S, False, 0
    while not ready():
        now = time.monotonic_ns()
        if now - checked > CHECK_NS:
            checked = now
            try:
                check()
            except Exception:
                # The peer may have published its data after our last poll and before its end.
                if not ready():
                    raise
        if now - start < yield_ns:
            yield_core()
        else:
            if not reported or moved() != last_moved:
                post.wait(peer)
                reported, last_moved = True, moved()
            sleep(pause)
            pause = min(2 * pause, SLEEP_MAX_S)
    if reported:
        post.stop_waiting()
