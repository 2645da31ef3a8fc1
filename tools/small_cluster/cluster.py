"""Starts, inspects and ends small clusters."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.fabric.netns import namespaces
from scaleproof.fabric.netns.netns import coordinator_command
from scaleproof.fabric.small_clusters import HEAD, HOME, SAFE, SmallCluster, alone, clusters, read_cluster, remove
from scaleproof.rank.process_lifetime import ending_with_this_process
from tools.small_cluster import network
from tools.small_cluster.cluster_coordinator import NODES, PATH, REQUESTS
from tools.small_cluster.files import write_files

PROGRAMS = ("slurmctld", "slurmd", "sinfo", "munged")
PACKAGES = "slurmctld slurmd slurm-client munge"
MOST = 200
"""Nodes that have an address."""
UP_S, DOWN_S = 60.0, 15.0
NAME = re.compile(r"[a-z][a-z0-9]{0,15}")
ROOT = Path(__file__).resolve().parents[2]


class ClusterError(Exception):
    """One line that says what is wrong and what to do."""


def obstacle() -> str:
    """One-line reason why no small cluster can be made here; empty when there is none."""
    if os.geteuid() != 0:
        return "only root can make nodes out of namespaces; type the same with sudo"
    if missing := [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]:
        return f"no program {', '.join(missing)}; type `apt-get install --no-install-recommends {PACKAGES}`"
    return ""


def up(
    nodes: int, name: str, *, rate_mbit: float | None = None, gpus: int = 0, cpus: int | None = None, tied: bool = False
) -> SmallCluster:
    """Start a cluster and wait until all its nodes are idle. `tied`: it ends with this process. ClusterError on
    failure."""
    if why := obstacle():
        raise ClusterError(why)
    if not 1 <= nodes <= MOST or not NAME.fullmatch(name):
        raise ClusterError(f"between 1 and {MOST} nodes, and a name of small letters and digits")
    with alone():
        if (running := read_cluster(HOME / name)) and running.alive():
            raise ClusterError(
                f"cluster {name!r} is already up with {running.nodes} nodes; "
                f"`python -m tools.small_cluster --name {name} down` ends it; --name starts another one beside it"
            )
        remove(HOME / name)
        cluster = SmallCluster(name, nodes, network.free_network(), cpus or os.cpu_count() or 1, rate_mbit, gpus)
        cluster.folder.mkdir(SAFE)
        write_files(cluster)
        cluster.write()
        cluster = _start(cluster, tied)
        try:
            _wait("its coordinator did not start", cluster, lambda: psutil.Process(cluster.pid).children())
            network.connect(cluster, first_process(cluster, HEAD))
        except BaseException:
            down(cluster)
            raise
    try:
        _wait("nodes did not come up", cluster, lambda: idle(cluster) == nodes)
    except BaseException:
        down(cluster)
        raise
    return cluster


def _start(cluster: SmallCluster, tied: bool) -> SmallCluster:
    paths = [str(ROOT), str(ROOT / "harness"), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = coordinator_command(cluster.folder, "tools.small_cluster.cluster_coordinator")
    if tied:
        command = ending_with_this_process(command)
    with (cluster.folder / "log" / "coordinator.out").open("wb") as out:
        process = subprocess.Popen(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=variables
        )
    started = replace(cluster, pid=process.pid, started=psutil.Process(process.pid).create_time())
    started.write()
    return started


def down(cluster: SmallCluster) -> None:
    """End the whole cluster at once, like a power cut: the kernel ends every process with the coordinator."""
    if cluster.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(cluster.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(cluster.pid, 0)
    until = time.monotonic() + DOWN_S
    while (cluster.alive() or Path(f"/sys/class/net/small{cluster.network}").exists()) and time.monotonic() < until:
        time.sleep(0.02)
    remove(cluster.folder)


def idle(cluster: SmallCluster) -> int:
    """Number of nodes that wait for jobs."""
    names = slurm_output(cluster, "sinfo", "-h", "-N", "-t", "idle", "-o", "%N")
    return len(set(names.split()))


def slurm_output(cluster: SmallCluster, *command: str) -> str:
    """Standard output of a command of Slurm."""
    ended = subprocess.run(command, env=environment(cluster), capture_output=True, text=True, check=False, timeout=30)
    return ended.stdout


def environment(cluster: SmallCluster) -> dict[str, str]:
    """Environment variables of a process on this machine that uses the cluster."""
    return {**os.environ, "SLURM_CONF": str(cluster.configuration)}


def find(name: str) -> SmallCluster:
    """The running cluster of this name; ClusterError lists the running ones."""
    running = {cluster.name: cluster for cluster in clusters()}
    if name not in running:
        raise ClusterError(
            f"no cluster {name!r} is up; "
            + (f"up: {', '.join(running)}" if running else "`python -m tools.small_cluster up 4` starts one")
        )
    return running[name]


def change(cluster: SmallCluster, name: str, *, on: bool | None = None, plugged: bool | None = None) -> None:
    """Switch a node on or off, plug or unplug its cable; None: unchanged. Returns once the coordinator has done it."""
    _check_name(cluster, name)
    requests = read_json(cluster.folder / REQUESTS) or {"off": [], "unplugged": []}
    for key, state in (("off", on), ("unplugged", plugged)):
        if state is not None:
            requests[key] = sorted({*requests[key], name} - ({name} if state else set()))
    number = requests["number"] = requests.get("number", 0) + 1
    write_json(cluster.folder / REQUESTS, requests)

    def followed() -> bool:
        return bool((read_json(cluster.folder / NODES) or {}).get("number") == number)

    _wait("the coordinator did not follow", cluster, followed)


def run_on(cluster: SmallCluster, name: str, command: Sequence[str]) -> int:
    """Run a command in a node's namespaces, in this directory and with this environment; its exit code."""
    file = Path("/proc", str(first_process(cluster, name)), "ns")
    spaces, directory = [os.open(file / kind, os.O_RDONLY) for kind in ("net", "uts", "ipc", "pid", "mnt")], os.getcwd()
    child = os.fork()
    if child == 0:
        code = 127
        try:
            for space in spaces:
                namespaces.enter(space)
            os.chdir(directory)
            code = subprocess.run(command, check=False).returncode
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code & 255)
    for space in spaces:
        os.close(space)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def first_process(cluster: SmallCluster, name: str) -> int:
    """Process id of the first process of a node, or of `head`, as seen from this machine."""
    coordinator = psutil.Process(cluster.pid).children()[0]
    if name == HEAD:
        return coordinator.pid
    _check_name(cluster, name)
    inside = (read_json(cluster.folder / NODES) or {"pids": {}})["pids"].get(name)
    for child in coordinator.children():
        if inside is not None and _numbers(child.pid)[-2:] == [inside, 1]:
            return child.pid
    raise ClusterError(f"{name} is off")


def _check_name(cluster: SmallCluster, name: str) -> None:
    if name not in cluster.names:
        raise ClusterError(f"no node {name!r}; there are {HEAD}, {', '.join(cluster.names)}")


def _numbers(pid: int) -> list[int]:
    """A process's id in each of its process namespaces, the outermost first."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return [int(number) for number in text.split("NSpid:")[1].split("\n")[0].split()]


def _wait(problem: str, cluster: SmallCluster, is_ready: Callable[[], object]) -> None:
    until = time.monotonic() + UP_S
    while not is_ready():
        if not cluster.alive() or time.monotonic() > until:
            last_lines = [
                line
                for file in sorted((cluster.folder / "log").glob("*"))
                for line in file.read_text(errors="replace").splitlines()[-1:]
            ]
            raise ClusterError(f"{problem}: {'; '.join(last_lines)[-600:]}")
        time.sleep(0.05)
