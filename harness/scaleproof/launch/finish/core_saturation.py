"""Whether the machine had enough cores for a launch with replayed compute. There may be more ranks than cores, since
ranks mostly sleep, but then no rank may have to wait for a core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.core.record_schema import Warning
from scaleproof.launch.finish.disturbances import SHORT_S
from scaleproof.launch.watch.idle_time import IdleTrace
from scaleproof.record.machine_load import HZ

IDLE = 0.10
"""Share of all cores' time that must stay idle in the timed region of a replayed launch."""
LATE = 0.05
"""Share of their length by which passes may end late."""
FULL = 0.05
"""Share of the timed region that may lie in windows (WINDOW_S) with less idle time than IDLE. It bounds the delay by
full cores, and equals the error that replay may have."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """Figures over the timed region, of the rank where they were worst; None where they could not be read, or the
    region was too short for the kernel's ticks."""

    idle: float | None = None
    """Share of all cores' time that was idle."""
    queued: float | None = None
    """Time for which a rank's threads waited for a core, as a share of the timed region. Shown only: a thread that is
    woken for every packet waits often, but then reads several packets at once, so that no byte arrives later."""
    late: float | None = None
    """Lateness of replayed passes as a share of their length."""
    full: float | None = None
    """Share of the timed region in windows with less idle time than IDLE, as the supervisor saw it."""
    quota: float | None = None
    """Time for which the supervisor's control group waited for its quota of processor time, as a share of the timed
    region: a container may not use cores that are idle."""


def crowding(
    paces: Sequence[Mapping[str, Any] | None], lates: Sequence[Mapping[str, Any] | None], trace: IdleTrace
) -> Crowding:
    """`paces`: each rank's readings at the start and the end of its timed region; `lates`: how late its sleeps ended;
    `trace`: the supervisor's readings meanwhile."""
    idle, queued = [], []
    for pace in paces:
        start, end = (pace or {}).get("start") or {}, (pace or {}).get("end") or {}
        passed = _between(start, end, "ticks")
        if passed is not None and passed > SHORT_S * HZ and (rested := _between(start, end, "idle_ticks")) is not None:
            idle.append(rested / passed)
        lasted, waited = _between(start, end, "at_ns"), _between(start, end, "queued_ns")
        if lasted and waited is not None:
            queued.append(waited / lasted)
    late = [passes["late_ns"] / passes["planned_ns"] for passes in lates if passes and passes["planned_ns"]]
    regions = [
        (start["at_ns"], end["at_ns"])
        for pace in paces
        if (start := (pace or {}).get("start")) and (end := (pace or {}).get("end"))
    ]
    full = [share for region in regions if (share := trace.full_share(*region, IDLE)) is not None]
    quota = [share for region in regions if (share := trace.quota_share(*region)) is not None]
    rounded = [
        None if not values else round(pick(values), 4)
        for values, pick in ((idle, min), (queued, max), (late, max), (full, max), (quota, max))
    ]
    return Crowding(*rounded)


def _between(start: Mapping[str, Any], end: Mapping[str, Any], name: str) -> int | None:
    first, last = start.get(name), end.get(name)
    return None if first is None or last is None else last - first


def saturation(crowded: Crowding) -> list[Warning]:
    """One warning with all reasons, for a launch whose compute was replayed. With it none of the launch's times counts
    (EXCLUDING in core/record_schema.py)."""
    reasons = []
    if crowded.idle is not None and crowded.idle < IDLE:
        reasons.append(f"{crowded.idle:.0%} of the cores' time was idle, at least {IDLE:.0%} must be")
    if crowded.late is not None and crowded.late > LATE:
        reasons.append(f"replayed passes ended {crowded.late:.0%} of their length too late, at most {LATE:.0%} may be")
    if crowded.full is not None and crowded.full > FULL:
        reasons.append(
            f"for {crowded.full:.0%} of the time less than {IDLE:.0%} of the cores was idle, "
            f"at most {FULL:.0%} may be so"
        )
    if crowded.quota is not None and crowded.quota > FULL:
        reasons.append(
            f"for {crowded.quota:.0%} of the time it waited for the quota of its control group, "
            f"at most {FULL:.0%} may be so"
        )
    advice = (
        "its times count in no metric: raise dilation or shrink (`scaleproof dilate` says which), "
        "end what else runs here, or raise a container's quota"
    )
    return [Warning(code="saturated", message="; ".join(reasons), advice=advice)] if reasons else []
