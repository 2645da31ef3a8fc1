"""Ends all processes of a launch and removes its files, by the launch's id in each process's environment and in names
of shared memory; also of launches whose supervisor has died."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

from scaleproof.core.atomic_write import read_json
from scaleproof.core.launch_spec import ENVIRONMENT, LaunchSpec
from scaleproof.fabric.netns import core_quota
from scaleproof.launch.adopted_process import LauncherProcess
from scaleproof.launch.launchers.launcher_contract import SCRATCH, SHARED, node_scratch, scratch
from scaleproof.launch.nodes.coordinator import LEFT

AGENT = "SCALEPROOF_AGENT"
"""Environment variable of the processes that an agent started on its node: the launch and the node's number."""
OWNER = "owner"
"""File in an agent's scratch folder: the inode of its PID namespace."""
LEAVE_S, LEAVE_NODES_S = 5.0, 30.0
"""Time after the last rank for the launcher to end by itself; that of guests still has to count captured packets."""
TERM_S = 0.3
"""Time between SIGTERM and SIGKILL."""

_POLL_S = 0.01


def end_launch(process: LauncherProcess | None, folder: Path, launch_spec: LaunchSpec) -> list[str]:
    """End all processes of the launch and remove its files outside of the folder; returns what it had left behind."""
    if launch_spec.nodes and process is not None:
        process.terminate()  # the coordinator then makes the agents end all processes on their nodes
        wait_for_launcher(process, LEAVE_NODES_S)
    end_processes(launch_spec.launch, TERM_S)
    if process is not None:
        process.kill()
        process.wait()
        reap_session(process.pid)
    return [*clean(launch_spec.launch), *(read_json(folder / LEFT) or [])]


def wait_for_launcher(process: LauncherProcess, within_s: float) -> list[str]:
    """What survived: the launcher, or nothing."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return [f"the launcher (process {process.pid})"]
    return []


def processes(launch: str, node: int | None = None) -> list[int]:
    """Living processes of a launch, of all nodes or of one node's agent. Zombies have no environment any more."""
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
    """SIGTERM, then SIGKILL after the grace (None: SIGKILL at once); returns the processes that it ended. Reaps those
    that this process adopted. `node`: see processes."""
    ended: dict[int, None] = {}
    for signal_number in (signal.SIGTERM, signal.SIGKILL) if grace_s is not None else (signal.SIGKILL,):
        for pid in sorted(processes(launch, node)):
            ended[pid] = None
            _send(pid, signal_number)
            _send(pid, signal.SIGCONT)
        if not ended:  # and nobody is left who could start another one; `clean` looks once more
            break
        if _gone(
            list(ended), launch, grace_s if signal_number == signal.SIGTERM and grace_s is not None else 5.0, node
        ):
            break
    return list(ended)


def clean(launch: str) -> list[str]:
    """Remove the scratch of a launch, and what the launch or a launch inside it left elsewhere; returns the latter as
    names for people."""
    temporary = scratch(launch)
    leftovers = [f"process {pid}" for pid in end_processes(launch, grace_s=0.0)]
    for inner in temporary.glob(f"{SCRATCH}*"):
        leftovers += clean(inner.name.removeprefix(SCRATCH))
    leftovers += core_quota.remove(temporary.name)
    shutil.rmtree(temporary, ignore_errors=True)
    for path in shared_memory(launch):
        leftovers.append(str(path))
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return leftovers


def mark_as_own(scratch: Path) -> None:
    """Write into an agent's scratch in which PID namespace the agent runs, for `remove_abandoned_scratch`."""
    (scratch / OWNER).write_text(_pid_namespace())


def clean_node(launch: str, node: int, leave_s: float) -> list[str]:
    """On a node of an allocation: wait `leave_s` for the processes of an agent to end, kill those that have not, and
    remove its scratch and the launch's shared memory; returns what a launch should not have left. Processes are killed
    in the order of their age: a parent before its ranks, so that it does not report their end."""
    until = time.monotonic() + leave_s
    while time.monotonic() < until and processes(launch, node):
        time.sleep(_POLL_S)
    leftovers = [f"process {pid}" for pid in end_processes(launch, None, node)]
    temporary = node_scratch(launch, node)
    shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        temporary.parent.rmdir()  # it stays while the supervisor or another agent of this machine needs it
    for path in shared_memory(launch):
        if path != temporary.parent:
            leftovers.append(str(path))
            path.unlink(missing_ok=True)
    return leftovers


def remove_abandoned_scratch() -> None:
    """Remove the scratch of agents that were killed: no process of their launch lives in this PID namespace."""
    for path in SHARED.glob(f"{SCRATCH}*/n*/{OWNER}"):
        launch, scratch = path.parents[1].name.removeprefix(SCRATCH), path.parent
        with suppress(OSError):
            if path.read_text() == _pid_namespace() and not processes(launch):
                shutil.rmtree(scratch, ignore_errors=True)
                scratch.parent.rmdir()


def _pid_namespace() -> str:
    return str(os.stat("/proc/self/ns/pid").st_ino)


def clean_leftovers(staging: Path) -> list[str]:
    """After a supervisor has died: end the processes of its unfinished launches and remove their folders. Call only
    under the lock of the results."""
    leftovers = []
    for folder in sorted(staging.iterdir()) if staging.exists() else []:
        leftovers += clean(folder.name)
        shutil.rmtree(folder, ignore_errors=True)
        leftovers.append(f"unfinished launch {folder.name}")
    return leftovers


def reap_session(session: int, within_s: float = 1.0) -> None:
    """Reap the orphans of a launcher's session that this process has adopted, and those of sessions whose leader has
    ended: MPICH's mpiexec makes a session for each process that it starts."""
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


def _send(pid: int, signal_number: int) -> None:
    try:
        os.kill(pid, signal_number)
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
    """Whether a child of this process has not ended; a child that has ended is reaped."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False
