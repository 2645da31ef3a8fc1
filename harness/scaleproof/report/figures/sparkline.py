"""The time of a step over steps as one small line, without matplotlib: each run page has one per rank."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

WIDTH, HEIGHT = 600, 60


def sparkline(values: np.ndarray, label: str) -> Markup:
    """The values at equal distances, on an axis from 0 to their maximum; empty for fewer than two values."""
    if len(values) < 2 or not np.max(values) > 0:
        return Markup("")
    x = np.linspace(2, WIDTH - 2, len(values))
    y = HEIGHT - 2 - (HEIGHT - 4) * values / np.max(values)
    points = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    area = f"M2 {HEIGHT}L{points}L{WIDTH - 2} {HEIGHT}z"
    frame = Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<path class="area" d="{}"/><path d="M{}"/></svg>'
    )
    return frame.format(WIDTH, HEIGHT, label, area, points)
