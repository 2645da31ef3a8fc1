"""What only this suite needs: rates of windows of messages, how evenly senders are served, processor time per byte, and
how well the cost models predict."""

from __future__ import annotations

from . import cost_lines, message_windows

METRICS = [
    *message_windows.METRICS,
    *cost_lines.METRICS,
]
