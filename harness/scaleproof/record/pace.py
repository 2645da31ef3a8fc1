"""What changes while a machine works and slows it down: other work, a hypervisor, heat, a quota, a lower clock; read
outside timed samples."""

from __future__ import annotations

import functools
import os
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scaleproof.record.cgroups import throttled
from scaleproof.record.host import meminfo

_CPU = Path("/sys/devices/system/cpu")
_POWER = Path("/sys/class/powercap")
HZ = os.sysconf("SC_CLK_TCK")
"""Ticks of /proc/stat per second."""


def load() -> dict[str, Any]:
    """The machine and this process's own part in it: load average, free MiB, processor time in ticks since boot (all,
    idle, stolen by a hypervisor), processor seconds of this process and its ended children, hottest sensor in degrees
    Celsius, thermal throttling events, `energy`, and `pace`."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "load_1min": os.getloadavg()[0],
        "free_mib": meminfo("MemAvailable"),
        "own_cpu_s": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 3),
        "temperature_c": hottest(),
        "thermal_throttles": _thermal_throttles(),
        "energy": energy(),
        **pace(),
    }


def pace() -> dict[str, Any]:
    """What one rank sees at the ends of its timed region (a fraction of a millisecond): MHz of the core it runs on, how
    its control group was throttled, ticks of the cores that it may use since boot, of these the idle ones, and ns for
    which its threads waited for a core (None where the kernel does not count)."""
    return {"mhz": _mhz(), "throttled": throttled(), **ticks(), "queued_ns": queued_ns(), "at_ns": time.monotonic_ns()}


def ticks() -> dict[str, int | None]:
    """Of the cores that this process may use, since boot: `ticks`, `idle_ticks`, and `steal_ticks` that a hypervisor
    took."""
    own = os.sched_getaffinity(0)
    rows = [line.split()[:9] for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")]
    mine = [[int(field) for field in row[1:]] for row in rows[1:] if int(row[0][3:]) in own]
    fields = [sum(column) for column in zip(*mine, strict=True)]
    return {
        "ticks": sum(fields),
        "idle_ticks": fields[3] + fields[4],
        "steal_ticks": fields[7] if len(fields) > 7 else None,
    }


def queued_ns() -> int | None:
    """For how long threads of this process that live were ready to run and had no core."""
    try:
        return sum(int(path.read_text().split()[1]) for path in Path("/proc/self/task").glob("*/schedstat"))
    except (OSError, ValueError, IndexError):
        return None


def hottest() -> float | None:
    """The highest temperature that any thermal zone or sensor tells; None where there is none."""
    values = [_number(path) for path in _sensors()]
    known = [value / 1000 for value in values if value is not None]
    return max(known, default=None)


@functools.cache
def _sensors() -> list[Path]:
    return [
        *Path("/sys/class/thermal").glob("thermal_zone*/temp"),
        *Path("/sys/class/hwmon").glob("hwmon*/temp*_input"),
    ]


def energy() -> dict[str, dict[str, int]] | None:
    """Of each processor package (its powercap zone) the energy counter in µJ and where it starts anew; None where none
    can be read."""
    found = {
        zone.name: {"uj": _number(zone / "energy_uj"), "range_uj": _number(zone / "max_energy_range_uj")}
        for zone in _packages()
    }
    known = {
        name: {"uj": uj, "range_uj": reach}
        for name, zone in found.items()
        if (uj := zone["uj"]) is not None and (reach := zone["range_uj"]) is not None
    }
    return known or None


def power_w(before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> float | None:
    """Mean power of all packages between two readings of `load`, in W; None where it was not readable. A counter may
    have started anew once."""
    first, last = before.get("energy") or {}, after.get("energy") or {}
    used = [(last[name]["uj"] - first[name]["uj"]) % last[name]["range_uj"] for name in first.keys() & last.keys()]
    return sum(used) / 1e6 / seconds if used and seconds > 0 else None


@functools.cache
def _packages() -> list[Path]:
    """Intel's and AMD's running-average-power-limit zones of whole packages; kernels since 5.10 let only root read
    them."""
    names = {zone: zone / "name" for zone in sorted(_POWER.glob("intel-rapl:*"))}
    return [zone for zone, name in names.items() if name.is_file() and name.read_text().startswith("package")]


@functools.cache
def _throttle_counters() -> list[Path]:
    return sorted(_CPU.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))


def _thermal_throttles() -> int | None:
    """Sum over cores of how often the processor slowed itself down because of heat; None where the kernel does not
    count it."""
    counts = [_number(path) for path in _throttle_counters()]
    return sum(count for count in counts if count is not None) if counts else None


def _mhz() -> float | None:
    """Of the core that this thread runs on; a virtual machine often tells a constant."""
    core = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36])
    scaled = _number(_CPU / f"cpu{core}" / "cpufreq" / "scaling_cur_freq")
    if scaled is not None:
        return scaled / 1000
    values = [
        line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("cpu MHz")
    ]
    return float(values[core]) if core < len(values) else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
