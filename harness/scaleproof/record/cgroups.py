"""Limits of the control group of this process, versions 1 and 2: a container may use less than the machine has.

They are read from the kernel's files, since psutil does not have them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOUNT = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60
"""Bytes. Version 1 shows a huge number where there is no limit."""


def limits(mount: Path = MOUNT, membership: Path = Path("/proc/self/cgroup")) -> dict[str, Any]:
    """The tightest limits of the group and of those above it: `cpu_max` in cores, `memory_max` in bytes (both None: no
    limit), `cpuset` as the kernel writes it, `version`.

    A limit that cannot be read is the text "not readable"."""
    quotas = [_quota(folder) for folder in _folders("cpu", mount, membership)]
    memory = [_memory(folder) for folder in _folders("memory", mount, membership)]
    core_lists = [
        _text(folder / name)
        for folder in _folders("cpuset", mount, membership)
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
    ]
    return {
        "version": _version(mount),
        "cpu_max": _tightest(quotas),
        "memory_max": _tightest(memory),
        "cpuset": next((cores for cores in core_lists if cores), "not readable"),
    }


def throttled(mount: Path = MOUNT, membership: Path = Path("/proc/self/cgroup")) -> dict[str, int] | None:
    """How often this group and those above it waited because a quota was used up (`times`), and for how long in
    microseconds: summed over all cores (`us`), and at most by the wall clock (`most_us`: one period of the quota each
    time). None if the kernel does not count it."""
    total: dict[str, int] | None = None
    for path, period_us in _statistics(mount, membership):
        values = dict(line.split() for line in (_text(path) or "").splitlines() if len(line.split()) == 2)
        if "nr_throttled" in values:
            times = int(values["nr_throttled"])
            waited_us = (
                int(values["throttled_usec"])
                if "throttled_usec" in values
                else int(values.get("throttled_time", 0)) // 1000
            )
            group = {"times": times, "us": waited_us, "most_us": times * period_us}
            total = {name: value + (total[name] if total else 0) for name, value in group.items()}
    return total


@functools.cache
def _statistics(mount: Path, membership: Path) -> list[tuple[Path, int]]:
    """Files with statistics, each with the period of its quota: the kernel's default of 100 ms if no file has it."""
    return [(folder / "cpu.stat", _period_us(folder)) for folder in _folders("cpu", mount, membership)]


def _period_us(folder: Path) -> int:
    cpu_max = _text(folder / "cpu.max")
    period = cpu_max.split()[-1] if cpu_max else _text(folder / "cpu.cfs_period_us")
    return int(period) if period and period.isdigit() else 100_000


def memory_left(mount: Path = MOUNT, membership: Path = Path("/proc/self/cgroup")) -> int | None:
    """Bytes until the tightest memory limit; None without a limit."""
    remaining = []
    for folder in _folders("memory", mount, membership):
        limit = _memory(folder)
        used = _text(folder / "memory.current") or _text(folder / "memory.usage_in_bytes")
        if isinstance(limit, int) and used:
            remaining.append(limit - int(used))
    return min(remaining, default=None)


def _version(mount: Path) -> int:
    return 2 if (mount / "cgroup.controllers").exists() else 1


def _folders(controller: str, mount: Path, membership: Path) -> Iterator[Path]:
    """The group's folder and those above it, up to the mount. In a container the group's path may not exist below the
    mount: then only the mount."""
    is_version_2 = _version(mount) == 2
    groups = [line.split(":", 2) for line in (_text(membership) or "").splitlines()]
    paths = (path for _, names, path in groups if (not names if is_version_2 else controller in names.split(",")))
    mounted = [folder for folder in (mount / controller, mount / "cpu,cpuacct") if folder.exists()]
    top = mounted[0] if mounted and not is_version_2 else mount
    folder = top / next(paths, "/").lstrip("/")
    while folder != top:
        if folder.exists():
            yield folder
        folder = folder.parent
    yield top


def _quota(folder: Path) -> float | str | None:
    """Limit in cores; None without a limit."""
    cpu_max = _text(folder / "cpu.max")
    quota, period = (
        cpu_max.split() if cpu_max else (_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))
    )
    if quota is None or period is None:
        return "not readable"
    return None if quota in ("max", "-1") else int(quota) / int(period)


def _memory(folder: Path) -> int | str | None:
    """Limit in bytes; None without a limit."""
    text = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")
    if text is None:
        return "not readable"
    return None if text == "max" or int(text) >= _NO_LIMIT else int(text)


def _tightest(limits: list[Any]) -> Any:
    """The smallest limit; "not readable" only if no group has a file for it, since the root of version 2 has none."""
    readable = [limit for limit in limits if limit != "not readable"]
    if not readable:
        return "not readable"
    return min((limit for limit in readable if limit is not None), default=None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
