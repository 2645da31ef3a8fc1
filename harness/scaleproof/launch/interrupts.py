"""Signals that end a run of launches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from scaleproof.rank.process_lifetime import adopt_orphans


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does. Meanwhile this process adopts orphans of its launches and reaps
    them."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    adopt_orphans()
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)} if main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        adopt_orphans(False)
