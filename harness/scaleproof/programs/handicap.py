"""An injected slowdown for calibration, which must be able to detect it."""

from __future__ import annotations

from scaleproof.core.recorder import now


def finished(start: int, share: float) -> int:
    """The end (ns) of a sample that began at `start`: now, or after a busy wait of `share` times its duration so
    far."""
    end = now()
    if share:
        until = end + round((end - start) * share)
        while (end := now()) < until:
            pass
    return end
