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


def leftovers(results: Path) -> list[dict[str, str]]:
    """Everything of launches that no supervisor watches any more, with advice; `kind`, `what`, `launch`, `advice`."""
    staging = results / "staging"
    staged = set() if supervised(results) else {folder.name for folder in staging.glob("*") if folder.is_dir()}
    processes = launch_processes()
    alive = {process.launch for process in processes}
    scratch = {
        "shared memory": sorted(Path("/dev/shm").glob(f"{SCRATCH}*")),
        "control group": core_quota.left(SCRATCH),
    }
    left = [("folder", str(staging / launch), launch) for launch in sorted(staged)]
    left += [
        ("process", str(process.pid), process.launch)
        for process in processes
        if process.launch in staged or process.parent == 1
    ]
    for kind, paths in scratch.items():
        launches = [path.name.removeprefix(SCRATCH) for path in paths]
        left += [
            (kind, str(path), launch)
            for path, launch in zip(paths, launches, strict=True)
            if launch in staged or launch not in alive
        ]
    left += [("small cluster", str(folder), "") for folder in small_clusters.leftovers()]
    return [
        {"kind": kind, "what": what, "launch": launch, "advice": _advice(kind, launch in staged)}
        for kind, what, launch in left
    ]


def remove_leftovers(results: Path) -> list[str]:
    """End and remove what `leftovers` lists; returns what was removed. SpecError when a run has begun in this folder
    meanwhile."""
    left = leftovers(results)
    with locked(results):
        removed = clean_leftovers(results / "staging")
    for launch in dict.fromkeys(item["launch"] for item in left if _ID.match(item["launch"])):
        removed += clean(launch)
    for item in left:
        if item["kind"] == "small cluster":
            small_clusters.remove(Path(item["what"]))
    files = [item["what"] for item in left if item["kind"] in ("small cluster", "shared memory")]
    return list(dict.fromkeys([*removed, *(path for path in files if not Path(path).exists())]))


def _advice(kind: str, staged: bool) -> str:
    if staged:
        return "the next `scaleproof run` into this folder removes it"
    return "`scaleproof doctor --clean` ends it" if kind == "process" else "`scaleproof doctor --clean` removes it"


def supervised(results: Path) -> bool:
    """Whether a supervisor holds the lock of this folder right now."""
    try:
        with (results / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def launch_processes() -> list[LaunchProcess]:
    """Every process of a launch that this user may see."""
    processes = []
    for process in psutil.process_iter():
        try:
            launch = process.environ().get(ENVIRONMENT)
            if launch:
                processes.append(LaunchProcess(process.pid, process.ppid(), launch))
        except (psutil.Error, OSError):  # it ended meanwhile, or is another user's
            continue
    return processes
