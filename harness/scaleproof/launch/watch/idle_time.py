"""Idle time of all cores and waiting for a quota during a launch, in windows of a quarter of a second: an average over
whole steps would hide an exchange that filled every core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from scaleproof.record.cgroups import throttled
from scaleproof.record.machine_load import core_ticks

WINDOW_S = 0.25
"""25 ticks of the kernel per core."""


class Reading(NamedTuple):
    """`at_ns`: monotonic clock; `ticks`, `idle_ticks`: of all cores, from /proc/stat; `waited_us`: microseconds for
    which this process's control group had waited for its quota, the sum over cores and the most it can be by the clock
    (None: the kernel does not report it)."""

    at_ns: int
    ticks: int
    idle_ticks: int
    waited_us: tuple[int, int] | None = None


@dataclass(slots=True)
class IdleTrace:
    """Readings in the order of time."""

    readings: list[Reading] = field(default_factory=list)

    def look(self) -> None:
        """Take a reading; call it at least every WINDOW_S."""
        cpu_time, waited = core_ticks(), throttled()
        total, idle = cpu_time["ticks"], cpu_time["idle_ticks"]
        if total is not None and idle is not None:
            waited_us = (waited["us"], waited["most_us"]) if waited else None
            self.readings.append(Reading(time.monotonic_ns(), total, idle, waited_us))

    def full_share(self, start_ns: int, end_ns: int, least_idle: float) -> float | None:
        """Share of a region's time that lies in windows in which less than `least_idle` of all cores' time was idle;
        None where no window lies in it."""
        inside, full = 0.0, 0.0
        for first, last, overlap in self._windows(start_ns, end_ns):
            if last.ticks > first.ticks:
                inside += overlap
                full += overlap if (last.idle_ticks - first.idle_ticks) / (last.ticks - first.ticks) < least_idle else 0
        return full / inside if inside else None

    def quota_share(self, start_ns: int, end_ns: int) -> float | None:
        """Upper bound of the share of a region's time for which the control group waited for its quota, from the
        windows that overlap it; None where the kernel does not report it."""
        inside, waited = 0.0, 0.0
        for first, last, overlap in self._windows(start_ns, end_ns):
            if first.waited_us is not None and last.waited_us is not None:
                inside += overlap
                least = min(after - before for before, after in zip(first.waited_us, last.waited_us, strict=True))
                waited += overlap * min(1e3 * least / (last.at_ns - first.at_ns), 1.0)
        return waited / inside if inside else None

    def _windows(self, start_ns: int, end_ns: int) -> Iterator[tuple[Reading, Reading, int]]:
        """The readings at both ends of each window that overlaps a region, and the overlap in ns."""
        for first, last in pairwise(self.readings):
            if (overlap := min(last.at_ns, end_ns) - max(first.at_ns, start_ns)) > 0:
                yield first, last, overlap
