"""A rank that takes a quarter of a second for each iteration, and no processor."""

from __future__ import annotations

import time
from typing import Any

from scaleproof.core.context import RankContext


def run(context: RankContext) -> None:
    """As many samples as iterations."""
    case: Any = context.case
    for number in range(case.iterations):
        context.at(number, "sleep")
        start = time.monotonic_ns()
        time.sleep(0.25)
        context.recorder.add("step", number, start, time.monotonic_ns())
