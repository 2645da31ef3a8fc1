"""Readings of what can slow a machine down while it works: other work, a hypervisor, heat, a quota, a lower clock. They
are taken outside of timed samples.

Memory and temperature come from psutil. Kernel files are read for what psutil does not have: ticks by core number
(psutil's list has no numbers, and cores can be offline), time that threads waited for a core, energy counters, thermal
throttling, quotas, and the clock of one core without reading those of all."""

from __future__ import annotations

import functools
import os
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from scaleproof.record.cgroups import throttled
from scaleproof.record.host import available_mib

_CPU = Path("/sys/devices/system/cpu")
_POWER = Path("/sys/class/powercap")
HZ = os.sysconf("SC_CLK_TCK")
"""Ticks of /proc/stat per second."""


def read_machine_load() -> dict[str, Any]:
    """The machine and the part of it that this process uses: load average, free MiB, processor seconds of this process
    and its ended children, hottest sensor in degrees Celsius, thermal throttling events, `energy`, and what
    `read_core_load` returns."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "load_1min": os.getloadavg()[0],
        "free_mib": available_mib(),
        "own_cpu_s": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 3),
        "temperature_c": highest_temperature_c(),
        "thermal_throttles": _thermal_throttles(),
        "energy": energy_counters(),
        **read_core_load(),
    }


def read_core_load() -> dict[str, Any]:
    """What one rank reads at both ends of its timed region (a fraction of a millisecond): MHz of the core it runs on,
    throttling of its control group, ticks since boot of the cores that it may use and how many of them were idle, and
    how many ns its threads waited for a core (None where the kernel does not count)."""
    return {
        "mhz": _mhz(),
        "throttled": throttled(),
        **core_ticks(),
        "queued_ns": queued_ns(),
        "at_ns": time.monotonic_ns(),
    }


def core_ticks() -> dict[str, int | None]:
    """Of the cores that this process may use, since boot: `ticks`, `idle_ticks`, and `steal_ticks` that a hypervisor
    took."""
    own_cores = os.sched_getaffinity(0)
    rows = [line.split()[:9] for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")]
    own_ticks = [[int(field) for field in row[1:]] for row in rows[1:] if int(row[0][3:]) in own_cores]
    fields = [sum(column) for column in zip(*own_ticks, strict=True)]
    return {
        "ticks": sum(fields),
        "idle_ticks": fields[3] + fields[4],
        "steal_ticks": fields[7] if len(fields) > 7 else None,
    }


def queued_ns() -> int | None:
    """Time for which the living threads of this process were ready to run and had no core."""
    try:
        return sum(int(path.read_text().split()[1]) for path in Path("/proc/self/task").glob("*/schedstat"))
    except (OSError, ValueError, IndexError):
        return None


def highest_temperature_c() -> float | None:
    """The highest temperature of any sensor, degrees Celsius; None where there is no sensor."""
    sensors = psutil.sensors_temperatures().values()
    return max((reading.current for readings in sensors for reading in readings), default=None)


def energy_counters() -> dict[str, dict[str, int]] | None:
    """Energy counter of each processor package (a powercap zone) in µJ, and the value at which it wraps around; None
    where no counter can be read."""
    counters = {
        zone.name: {"uj": _number(zone / "energy_uj"), "range_uj": _number(zone / "max_energy_range_uj")}
        for zone in _packages()
    }
    readable = {
        name: {"uj": uj, "range_uj": range_uj}
        for name, zone in counters.items()
        if (uj := zone["uj"]) is not None and (range_uj := zone["range_uj"]) is not None
    }
    return readable or None


def mean_power_w(before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> float | None:
    """Mean power of all packages between two readings of `read_machine_load`, in W; None if the counters were not
    readable. Correct if each counter wrapped around at most once."""
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
    """How often the cores slowed themselves down because of heat, in total; None where the kernel does not count."""
    counts = [_number(path) for path in _throttle_counters()]
    return sum(count for count in counts if count is not None) if counts else None


def _mhz() -> float | None:
    """Clock of the core that this process runs on; in a virtual machine often a constant."""
    core = psutil.Process().cpu_num()
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
