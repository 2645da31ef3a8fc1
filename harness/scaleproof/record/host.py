"""The machine as a process sees it, read once per process. What cannot be read is None, with the reason.

Memory comes from psutil. Kernel files are read for what psutil does not have: processor flags, microcode and cache,
governor and driver of the frequency, SMT, NUMA nodes, clock source, huge pages, and limits of the control group."""

from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil

from scaleproof.record.cgroups import limits

_CPU = "/sys/devices/system/cpu"
_FILES = {
    "governor": f"{_CPU}/cpu0/cpufreq/scaling_governor",
    "frequency_driver": f"{_CPU}/cpu0/cpufreq/scaling_driver",
    "frequency_min_khz": f"{_CPU}/cpu0/cpufreq/cpuinfo_min_freq",
    "frequency_max_khz": f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq",
    "boost": f"{_CPU}/cpufreq/boost",
    "smt": f"{_CPU}/smt/active",
    "numa_online": "/sys/devices/system/node/online",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "transparent_huge_pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "transparent_huge_pages_defrag": "/sys/kernel/mm/transparent_hugepage/defrag",
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "clocksources_available": "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "congestion_control": "/proc/sys/net/ipv4/tcp_congestion_control",
    "swappiness": "/proc/sys/vm/swappiness",
    "address_randomisation": "/proc/sys/kernel/randomize_va_space",
    "perf_event_paranoid": "/proc/sys/kernel/perf_event_paranoid",
}
_OF_CPUINFO = {
    "cpu": ("model name", "CPU part"),
    "cpu_flags": ("flags", "Features"),
    "microcode": ("microcode",),
    "cache_kib": ("cache size",),
}


@functools.cache
def host() -> dict[str, Any]:
    """Facts that do not change while this process lives. `not_readable`: reason by name. Sizes in MiB where the name
    says so."""
    missing: dict[str, str] = {}
    facts: dict[str, Any] = {"kernel": platform.release(), "python": platform.python_version(), "cores": cores()}
    facts |= {name: _cpuinfo(names, name, missing) for name, names in _OF_CPUINFO.items()}
    facts["cpu"] = cpu_model()
    facts["memory_mib"] = memory_mib()
    facts["swap_mib"] = psutil.swap_memory().total >> 20
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    facts["numa_nodes"] = len(nodes) or 1
    facts["numa"] = {node.name: _read(str(node / "cpulist"), f"numa.{node.name}", missing) for node in nodes}
    facts |= {name: _selected(_read(path, name, missing)) for name, path in _FILES.items()}
    facts["shared_memory_mib"] = _size_mib("/dev/shm", missing)
    facts["cgroup"] = limits()
    missing |= {
        f"cgroup.{name}": "no file of the control group has it"
        for name, value in facts["cgroup"].items()
        if value == "not readable"
    }
    return {**facts, "not_readable": missing}


def boot_id() -> str:
    """Id of this boot of this kernel: processes with the same id share a machine."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else platform.node()


def cores() -> int:
    """Logical processors that this process may use."""
    return len(os.sched_getaffinity(0))


def usable_cores() -> float:
    """Cores that this process may use: those of its affinity, or the quota of its control group if that is less."""
    quota = limits()["cpu_max"]
    return min(float(cores()), quota) if isinstance(quota, float) else float(cores())


def cpu_model() -> str:
    """As the kernel names it."""
    return _cpuinfo(_OF_CPUINFO["cpu"], "cpu", {}) or platform.processor() or "unknown"


def memory_mib() -> int:
    """Memory of the machine."""
    return int(psutil.virtual_memory().total) >> 20


def available_mib() -> int:
    """Memory that can be allocated without swapping."""
    return int(psutil.virtual_memory().available) >> 20


@functools.cache
def _first_processor() -> dict[str, str]:
    """Lines of /proc/cpuinfo about the first processor; those of the others differ only in numbers that change."""
    values: dict[str, str] = {}
    with Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            if not line.strip() and values:
                break
            name, _, value = line.partition(":")
            values.setdefault(name.strip(), value.strip())
    return values


def _cpuinfo(names: tuple[str, ...], fact: str, missing: dict[str, str]) -> str | None:
    value = next((_first_processor()[name] for name in names if _first_processor().get(name)), None)
    if value is None:
        missing[fact] = "/proc/cpuinfo has no such line"
    return value


def _size_mib(folder: str, missing: dict[str, str]) -> int | None:
    try:
        return int(psutil.disk_usage(folder).total) >> 20
    except OSError as error:
        missing["shared_memory_mib"] = f"{folder}: {error.strerror}"
        return None


def _read(path: str, name: str, missing: dict[str, str]) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        missing[name] = f"{path}: {error.strerror}"
        return None


def _selected(text: str | None) -> str | None:
    """The word in brackets of a list of choices, as the kernel marks the selected one; else the text."""
    selected = re.search(r"\[([\w+]+)\]", text or "")
    return selected.group(1) if selected else text
