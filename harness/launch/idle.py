"""Idle time of all cores, and waiting for a quota, as they went while a launch ran, by quarters of a second: an average over whole steps hides an exchange that
filled every core."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from harness.record.cgroups import throttled
from harness.record.pace import ticks

WINDOW_S = 0.25
"""25 of the kernel's ticks a core."""


@dataclass(slots=True)
class IdleTrace:
    """What /proc/stat said at times of the monotonic clock in ns: (time, ticks of all cores, the idle ones); and at the same times for how many microseconds
    this process's control group had waited for its quota."""

    seen: list[tuple[int, int, int]] = field(default_factory=list)
    waited_us: list[int | None] = field(default_factory=list)

    def look(self) -> None:
        """Call at least every WINDOW_S."""
        found = ticks()
        total, idle = found["ticks"], found["idle_ticks"]
        if total is not None and idle is not None:
            self.seen.append((time.monotonic_ns(), total, idle))
            self.waited_us.append((throttled() or {}).get("us"))

    def full_share(self, start_ns: int, end_ns: int, least_idle: float) -> float | None:
        """Share of a region's time that lies in windows in which less than `least_idle` of all cores' time was idle; None where no window lies in it."""
        inside, full = 0, 0
        for (begin, total, idle), (end, next_total, next_idle) in zip(self.seen, self.seen[1:], strict=False):
            overlap = min(end, end_ns) - max(begin, start_ns)
            if overlap <= 0 or next_total <= total:
                continue
            inside += overlap
            full += overlap if (next_idle - idle) / (next_total - total) < least_idle else 0
        return full / inside if inside else None

    def quota_share(self, start_ns: int, end_ns: int) -> float | None:
        """Share of the time for which the control group waited for its quota (a core's wait counts as much as that of all), by looks in a region and up to two
        WINDOW_S beside it; None where the kernel does not tell."""
        beside = round(2 * WINDOW_S * 1e9)
        looks = zip(self.seen, self.waited_us, strict=False)
        known = [(at, waited) for (at, _, _), waited in looks if waited is not None and start_ns - beside <= at <= end_ns + beside]
        if len(known) < 2:
            return None
        (began, before), (ended, after) = known[0], known[-1]
        return (after - before) * 1e3 / (ended - began)
