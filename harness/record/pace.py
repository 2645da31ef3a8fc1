"""What changes while a machine works and slows it down: other work, a hypervisor, heat, a quota, a lower clock; read outside timed samples."""

from __future__ import annotations

import functools
import os
import resource
from pathlib import Path
from typing import Any

from harness.record.cgroups import throttled
from harness.record.host import meminfo

_CPU = Path("/sys/devices/system/cpu")
HZ = os.sysconf("SC_CLK_TCK")
"""Ticks of /proc/stat per second."""


def load() -> dict[str, Any]:
    """The machine and this process's own part in it: load average, free MiB, processor time in ticks since boot (all, idle, stolen by a hypervisor),
    processor seconds of this process and its ended children, hottest sensor in degrees Celsius, thermal throttling events, and `pace`."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "load_1min": os.getloadavg()[0],
        "free_mib": meminfo("MemAvailable"),
        "ticks": sum(fields),
        "idle_ticks": fields[3] + fields[4],
        "steal_ticks": fields[7] if len(fields) > 7 else None,
        "own_cpu_s": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 3),
        "temperature_c": hottest(),
        "thermal_throttles": _thermal_throttles(),
        **pace(),
    }


def pace() -> dict[str, Any]:
    """What one rank sees at the ends of its timed region (a fraction of a millisecond): MHz of the core it runs on, and how its control group was throttled."""
    return {"mhz": _mhz(), "throttled": throttled()}


def hottest() -> float | None:
    """The highest temperature that any thermal zone or sensor tells; None where there is none."""
    values = [_number(path) for path in _sensors()]
    known = [value / 1000 for value in values if value is not None]
    return max(known, default=None)


@functools.cache
def _sensors() -> list[Path]:
    return [*Path("/sys/class/thermal").glob("thermal_zone*/temp"), *Path("/sys/class/hwmon").glob("hwmon*/temp*_input")]


@functools.cache
def _throttle_counters() -> list[Path]:
    return sorted(_CPU.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))


def _thermal_throttles() -> int | None:
    """Sum over cores of how often the processor slowed itself down because of heat; None where the kernel does not count it."""
    counts = [_number(path) for path in _throttle_counters()]
    return sum(count for count in counts if count is not None) if counts else None


def _mhz() -> float | None:
    """Of the core that this thread runs on; a virtual machine often tells a constant."""
    core = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36])
    scaled = _number(_CPU / f"cpu{core}" / "cpufreq" / "scaling_cur_freq")
    if scaled is not None:
        return scaled / 1000
    values = [line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("cpu MHz")]
    return float(values[core]) if core < len(values) else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
