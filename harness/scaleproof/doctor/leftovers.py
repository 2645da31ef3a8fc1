"""Leftovers of dead launches and their removal: folders, processes, shared memory, control groups, small clusters."""

from __future__ import annotations

import fcntl
import re
from pathlib import Path
from typing import NamedTuple

import psutil

from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.fabric import small_clusters
from scaleproof.fabric.netns import core_quota
from scaleproof.launch.launchers.launcher_contract import SCRATCH
from scaleproof.launch.results_lock import locked
from scaleproof.launch.teardown import clean, clean_leftovers

_ID = re.compile(r"[0-9a-f]{16}$")


class LaunchProcess(NamedTuple):
    """A process that has a launch's name in its environment."""

    pid: int
    parent: int
    launch: str


class _Remain(NamedTuple):
    """One thing that a dead launch left on this machine; `what`: its path or process id."""

    kind: str
    what: str
    launch: str


def leftovers(results: Path) -> list[dict[str, str]]:
    """All remains of launches without a supervisor, each with `kind`, `what`, `launch` and `advice`."""
    staging = results / "staging"
    staged = set() if supervised(results) else {folder.name for folder in staging.glob("*") if folder.is_dir()}
    processes = launch_processes()
    alive = {process.launch for process in processes}
    scratch = {
        "shared memory": sorted(Path("/dev/shm").glob(f"{SCRATCH}*")),
        "control group": core_quota.leftovers(SCRATCH),
    }
    remains = [_Remain("folder", str(staging / launch), launch) for launch in sorted(staged)]
    remains += [
        _Remain("process", str(process.pid), process.launch)
        for process in processes
        if process.launch in staged or process.parent == 1
    ]
    for kind, paths in scratch.items():
        launches = [path.name.removeprefix(SCRATCH) for path in paths]
        remains += [
            _Remain(kind, str(path), launch)
            for path, launch in zip(paths, launches, strict=True)
            if launch in staged or launch not in alive
        ]
    remains += [_Remain("small cluster", str(folder), "") for folder in small_clusters.leftovers()]
    return [{**remain._asdict(), "advice": _advice(remain.kind, remain.launch in staged)} for remain in remains]


def remove_leftovers(results: Path) -> list[str]:
    """End and remove what `leftovers` lists, and return what was removed. SpecError if a run has begun in this folder
    in the meantime."""
    remains = leftovers(results)
    with locked(results):
        removed = clean_leftovers(results / "staging")
    for launch in dict.fromkeys(item["launch"] for item in remains if _ID.match(item["launch"])):
        removed += clean(launch)
    for item in remains:
        if item["kind"] == "small cluster":
            small_clusters.remove(Path(item["what"]))
    files = [item["what"] for item in remains if item["kind"] in ("small cluster", "shared memory")]
    return list(dict.fromkeys([*removed, *(path for path in files if not Path(path).exists())]))


def _advice(kind: str, staged: bool) -> str:
    if staged:
        return "the next `scaleproof run` into this folder removes it"
    return "`scaleproof doctor --clean` ends it" if kind == "process" else "`scaleproof doctor --clean` removes it"


def supervised(results: Path) -> bool:
    """Whether a supervisor holds the lock of this folder now."""
    try:
        with (results / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def launch_processes() -> list[LaunchProcess]:
    """Every process of a launch, as far as this user may see it."""
    processes = []
    for process in psutil.process_iter():
        try:
            launch = process.environ().get(ENVIRONMENT)
            if launch:
                processes.append(LaunchProcess(process.pid, process.ppid(), launch))
        except (psutil.Error, OSError):  # it has ended, or belongs to another user
            continue
    return processes
