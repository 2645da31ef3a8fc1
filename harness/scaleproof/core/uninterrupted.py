"""A stretch of code that no request to end this process interrupts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

END_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP take effect at the end of the block, in the thread that is in it. A fork needs this:
    the interpreter swallows a KeyboardInterrupt that is raised in its own callbacks there. A child that is forked
    inside is not interrupted either."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
