"""Ends whatever belongs to a launch, by the launch's id in each process's environment and in names of shared memory,
and finds what a dead supervisor left."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.fabric.netns import core_quota
from scaleproof.launch.launchers.launcher_contract import SCRATCH, SHARED, node_scratch, scratch

AGENT = "SCALEPROOF_AGENT"
"""In the environment of what an agent started on its node: the launch and the node's number."""
OWNER = "owner"
"""File of an agent's scratch: the namespace of its processes' numbers."""
_POLL_S = 0.01


def processes(launch: str, node: int | None = None) -> list[int]:
    """Living processes of a launch (zombies have no environment any more), of all of it or of one node's agent."""
    return _marked(f"{ENVIRONMENT}={launch}" if node is None else f"{AGENT}={launch}.{node}")


def _marked(variable: str) -> list[int]:
    mark = variable.encode()
    pids = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        if mark in variables.split(b"\0"):
            pids.append(int(entry.name))
    return pids


def shared_memory(launch: str) -> list[Path]:
    """Entries of /dev/shm that carry a launch's id in their name."""
    return [Path(entry.path) for entry in os.scandir(SHARED) if launch in entry.name] if SHARED.is_dir() else []


def end_processes(launch: str, grace_s: float | None, node: int | None = None) -> list[int]:
    """SIGTERM, then SIGKILL after the grace (None: SIGKILL at once); returns the processes that were there. Reaps those
    that this process adopted. `node`: see processes."""
    ended: dict[int, None] = {}
    for number in (signal.SIGTERM, signal.SIGKILL) if grace_s is not None else (signal.SIGKILL,):
        for pid in sorted(processes(launch, node)):
            ended[pid] = None
            _send(pid, number)
            _send(pid, signal.SIGCONT)
        if _gone(list(ended), launch, grace_s if number == signal.SIGTERM and grace_s is not None else 5.0, node):
            break
    return list(ended)


def clean(launch: str) -> list[str]:
    """Remove its scratch, and everything that a launch or a launch inside it left outside their folders; returns the
    latter in words."""
    temporary = scratch(launch)
    left = [f"process {pid}" for pid in end_processes(launch, grace_s=0.0)]
    left += [each for inner in temporary.glob(f"{SCRATCH}*") for each in clean(inner.name.removeprefix(SCRATCH))]
    left += core_quota.remove(temporary.name)
    shutil.rmtree(temporary, ignore_errors=True)
    for path in shared_memory(launch):
        left.append(str(path))
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return left


def owned(scratch: Path) -> None:
    """Say in an agent's scratch whose it is, so that `sweep` knows it again."""
    (scratch / OWNER).write_text(_numbers())


def clean_node(launch: str, node: int, leave_s: float) -> list[str]:
    """On a node of an allocation: kill what an agent started and has not ended by itself meanwhile, remove its scratch
    and what else carries the launch's id; returns what no launch should leave. Parents, which are older, before their
    ranks, so that they do not report an end that comes from here."""
    until = time.monotonic() + leave_s
    while time.monotonic() < until and processes(launch, node):
        time.sleep(_POLL_S)
    left = [f"process {pid}" for pid in end_processes(launch, None, node)]
    temporary = node_scratch(launch, node)
    shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        temporary.parent.rmdir()  # it stays while the supervisor or another agent of this machine needs it
    for path in shared_memory(launch):
        if path != temporary.parent:
            left.append(str(path))
            path.unlink(missing_ok=True)
    return left


def sweep() -> None:
    """Remove what agents left here that were killed: scratch without any process of its launch."""
    for path in SHARED.glob(f"{SCRATCH}*/n*/{OWNER}"):
        launch, scratch = path.parents[1].name.removeprefix(SCRATCH), path.parent
        with suppress(OSError):
            if path.read_text() == _numbers() and not processes(launch):
                shutil.rmtree(scratch, ignore_errors=True)
                scratch.parent.rmdir()


def _numbers() -> str:
    return str(os.stat("/proc/self/ns/pid").st_ino)


def clean_leftovers(staging: Path) -> list[str]:
    """After a supervisor that died: end the processes of its unfinished launches and remove their folders. Call only
    under the lock."""
    left = []
    for folder in sorted(staging.iterdir()) if staging.exists() else []:
        left += clean(folder.name)
        shutil.rmtree(folder, ignore_errors=True)
        left.append(f"unfinished launch {folder.name}")
    return left


def reap_session(session: int, within_s: float = 1.0) -> None:
    """Reap the orphans of a launcher's session that this process has adopted, and those of sessions whose leader is
    gone: MPICH's mpiexec makes one for each process that it starts."""
    until = time.monotonic() + within_s
    while [
        child for child in psutil.Process().children() if _orphan(child, session) and _still_child(child.pid)
    ] and time.monotonic() < until:
        time.sleep(_POLL_S)


def _orphan(child: psutil.Process, session: int) -> bool:
    own = _session(child.pid)
    return own == session or (own is not None and not psutil.pid_exists(own))


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _gone(pids: list[int], launch: str, within_s: float, node: int | None) -> bool:
    until = time.monotonic() + within_s
    while True:
        # A process that ends loses its environment a moment before it can be reaped.
        children = [pid for pid in pids if _still_child(pid)]
        if not children and not processes(launch, node):
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_S)


def _still_child(pid: int) -> bool:
    """Whether a child of this process has not ended; one that has is reaped."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False
