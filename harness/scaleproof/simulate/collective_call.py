"""A collective call of all ranks: its schedule, its size, and when it starts and ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scaleproof.simulate.collective_schedules import Pattern


@dataclass(slots=True)
class Call:
    """One collective call of all ranks. `ready`: when each rank's input is ready, in s. The engine fills in `start` and
    `end`."""

    pattern: Pattern
    nbytes: float
    ready: np.ndarray
    priority: int = 0
    """With bucket order by priority, lower numbers go first."""
    channel: int = 0
    start: np.ndarray = field(default_factory=lambda: np.empty(0))
    end: np.ndarray = field(default_factory=lambda: np.empty(0))
