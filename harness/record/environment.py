"""What the machine was like before and after a launch."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

_VARIABLES = re.compile(
    r"^(OMP|MKL|OPENBLAS|KMP|GOMP|NUMEXPR|TF|GLOO|NCCL|UCX|OMPI|PMIX|PRTE|HOROVOD|GRPC|TORCH|CUDA|PYTHON|MALLOC|LD_|KERAS|XLA|OPAL|SCALEPROOF)"
    r"|^(http|https|all|no)_proxy$"
)
_PRIVATE = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|_FILE|PYTHONPATH|FILE_PATH", re.IGNORECASE)
"""Secrets, and where this user keeps files: neither explains a number, and records are published."""


def environment(variables: dict[str, str]) -> dict[str, Any]:
    """What stays as it is during a launch. `variables`: the environment that its processes get."""
    return {
        "kernel": platform.release(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_model(),
        "cores": cores(),
        "memory_mib": memory_mib(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_huge_pages": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "shared_memory_mib": _size_mib("/dev/shm"),
        "variables": {name: value for name, value in sorted(variables.items()) if _VARIABLES.search(name) and not _PRIVATE.search(name)},
    }


def load() -> dict[str, Any]:
    """What changes: load average over a minute, free memory, processor time that a hypervisor took (ticks since boot)."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return {"load_1min": os.getloadavg()[0], "free_mib": _memory("MemAvailable"), "steal_ticks": int(fields[8]) if len(fields) > 8 else None}


def cores() -> int:
    """Logical processors that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_model() -> str:
    """As the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def memory_mib() -> int:
    """Memory of the machine."""
    return _memory("MemTotal")


def _memory(name: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) // 1024
    return 0


def _size_mib(folder: str) -> int | None:
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_blocks * found.f_frsize >> 20


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _chosen(text: str | None) -> str | None:
    """The word in brackets of a kernel's list of choices."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found.group(1) if found else text
