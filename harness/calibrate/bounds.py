"""Upper bounds of this machine, each from several launches of a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from harness.record.machine import Bound
from harness.stats.intervals import median, median_interval

SIZES = (64 << 10, 1 << 20, 16 << 20, 64 << 20)
"""Bytes: within one core's cache, within the shared one, and beyond."""
LAUNCHES = 6
"""The fewest that give an interval."""
TIMEOUT_S = 120.0
RATE = "B/s"


class Bounds:
    """Collects launches of the bounds' programs."""

    def __init__(self) -> None:
        self.copy: dict[int, list[float]] = {size: [] for size in SIZES}
        self.all_reduce: dict[int, list[float]] = {size: [] for size in SIZES}
        self.loopback: list[float] = []

    def launch(self) -> None:
        """One launch of each. Raises subprocess.CalledProcessError or TimeoutExpired when one does not end well."""
        memory = _run("harness.calibrate.memory", *map(str, SIZES))
        for size in SIZES:
            self.copy[size].append(size / memory["copy"][str(size)])
            self.all_reduce[size].append(size / memory["all_reduce"][str(size)])
        self.loopback.append(_run("harness.calibrate.loopback")["bytes_per_second"])

    def found(self) -> tuple[Bound, ...]:
        """Medians over launches with their intervals."""
        copies = [_bound("memory_copy", size, rates, "one process copies memory, nobody else runs") for size, rates in self.copy.items()]
        adds = "two processes do an all-reduce's adds and copies on shared memory, nothing else; algbw"
        reduces = [_bound("two_rank_all_reduce", size, rates, adds) for size, rates in self.all_reduce.items()]
        return (*copies, *reduces, _bound("loopback", None, self.loopback, "one TCP connection between two processes over lo, fastest buffer"))


def measure_bounds(launches: int = LAUNCHES, say: Callable[[str], None] = lambda text: None) -> tuple[Bound, ...]:
    """All bounds from so many launches."""
    bounds = Bounds()
    for index in range(launches):
        say(f"bounds, launch {index + 1} of {launches}")
        bounds.launch()
    return bounds.found()


def _bound(name: Any, nbytes: int | None, rates: list[float], what: str) -> Bound:
    interval = median_interval(rates)
    low, high = (interval.low, interval.high) if interval else (None, None)
    taken = f"{what}; median over {len(rates)} launches"
    return Bound(name=name, nbytes=nbytes, value=median(rates), low=low, high=high, n=len(rates), unit=RATE, taken=taken)


def _run(module: str, *arguments: str) -> Any:
    root = Path(harness.__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=root, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return json.loads(done.stdout)
