"""A collective call of every rank: what it moves by which schedule, and when it starts and ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scaleproof.simulate.collective_schedules import Pattern


@dataclass(slots=True)
class Call:
    """One collective call of every rank. `ready`: when each rank has what it gives, in s; `start` and `end` are found
    out."""

    pattern: Pattern
    nbytes: float
    ready: np.ndarray
    place: int = 0
    """Low numbers go first where the order is by priority."""
    channel: int = 0
    start: np.ndarray = field(default_factory=lambda: np.empty(0))
    end: np.ndarray = field(default_factory=lambda: np.empty(0))
