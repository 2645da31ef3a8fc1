"""Fits the time of a hand-over between two threads of a rank to launches of the program that measures it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.claims.finished_launch import Launch, timed
from scaleproof.claims.launch_pool import Pool
from scaleproof.simulate.cost_file import Parameter
from scaleproof.stats.intervals import median_interval

EVENT = "handover"
WAYS = 2
"""An event goes to the other thread and back."""


def fit_handover(pool: Pool, machine: str) -> Parameter | None:
    """In s, one way; None where no launch of this machine measured it."""
    launches = [
        launch
        for launch in pool.launches({"program": "own", "entry": EVENT}, "measured")
        if launch.record.machine == machine
    ]
    return handover(launches)


def handover(launches: Sequence[Launch]) -> Parameter | None:
    """The median over launches of each one's median."""
    rows = [timed(launch.samples, EVENT) for launch in launches]
    values = [float((each["end_ns"] - each["start_ns"]).median()) / WAYS / 1e9 for each in rows if len(each)]
    if not values:
        return None
    interval = median_interval(values)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Parameter(value=float(np.median(values)), low=low, high=high)
