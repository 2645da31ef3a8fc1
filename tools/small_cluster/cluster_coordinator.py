"""`python -m tools.small_cluster.cluster_coordinator FOLDER`: builds the cluster of a folder, and follows requests.json
until it is killed. It is the first process of its own process and network namespaces: when it ends for any reason, the
kernel ends every daemon, node and link."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.fabric.netns import namespaces, netns_node
from scaleproof.fabric.netns.node_process import NodeProcess, fork_node
from scaleproof.fabric.node_coordinator import NodeCoordinator
from scaleproof.fabric.small_clusters import HEAD, SmallCluster, read_cluster
from tools.small_cluster import network

# Written by clients: names of the nodes without power (`off`) and without cable (`unplugged`), and a `number`.
REQUESTS = "requests.json"
# Written by the coordinator: the first process of each node, as it sees them, and the number of the request that it
# followed.
NODES = "nodes.json"
POLL_S = 0.1
UPLINK_S = 20.0
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class ClusterCoordinator(NodeCoordinator):
    """The nodes of a small cluster, which run a slurmd each until their power is cut."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.folder)
        self.cluster = cluster
        self.nodes = dict[str, NodeProcess]()

    def build(self) -> None:
        """See NodeCoordinator; and Slurm's daemons."""
        namespaces.unshare(namespaces.UTS | namespaces.IPC)
        furnish(self.cluster, HEAD)
        _wait_for_uplink()
        network.make_switches(self.cluster)
        self._start_daemons()
        self.follow({"off": [], "unplugged": [], "number": 0})

    def set_link(self, number: int, up: bool) -> None:
        """See NodeCoordinator."""
        network.set_link(self.cluster.names[number], up)

    def follow(self, requests: dict[str, Any]) -> None:
        """Nodes without power have no process; cables are plugged or not."""
        for number, name in enumerate(self.cluster.names):
            if name in requests["off"] and name in self.nodes:
                with contextlib.suppress(ProcessLookupError):
                    self.nodes.pop(name).kill()
            elif name not in requests["off"] and name not in self.nodes:
                self.nodes[name] = boot(self.cluster, name)
                self.unplugged.discard(number)  # the new node has a new cable
        self.update_links({n: name not in requests["unplugged"] for n, name in enumerate(self.cluster.names)})
        pids = {name: process.pid for name, process in self.nodes.items()}
        write_json(self.folder / NODES, {"pids": pids, "number": requests["number"]})

    def watch(self) -> None:
        """Never returns. Reaps every ended child. A node that ended by itself stays off until its power is requested
        off and on."""
        followed = None
        while True:
            requests = read_json(self.folder / REQUESTS)
            if requests is not None and requests != followed:
                followed = requests
                self.follow(requests)
            reap()
            time.sleep(POLL_S)

    def _start_daemons(self) -> None:
        """munged with seeds and logs of its own, so that nothing of the machine's munge is touched; then slurmctld."""
        etc, log, socket = self.folder / "etc", self.folder / "log", self.folder / "munge.socket"
        files = {
            "key-file": etc / "munge.key",
            "socket": socket,
            "pid-file": self.folder / "munged.pid",
            "log-file": log / "munged.log",
            "seed-file": self.folder / "munged.seed",
        }
        start("munged", ["munged", "--foreground", *(f"--{option}={path}" for option, path in files.items())], log)
        while not socket.is_socket():
            time.sleep(0.01)
        start("slurmctld", ["slurmctld", "-D", "-c"], log)


def _wait_for_uplink() -> None:
    until = time.monotonic() + UPLINK_S
    while not network.uplinked():
        if time.monotonic() > until:
            raise SystemExit("nobody connected the cluster: the process that made it is gone")
        time.sleep(0.01)


def boot(cluster: SmallCluster, name: str) -> NodeProcess:
    """Fork a node and plug in its cable."""
    process = fork_node(partial(_node_main, cluster, name))
    network.plug(cluster, name, process.pid)
    process.announce_links()
    return process


def _node_main(cluster: SmallCluster, name: str, wait_for_links: Callable[[], None]) -> None:
    """Never returns: sets the node up, starts its slurmd, and reaps its orphans."""
    log = cluster.folder / "log"
    try:
        os.setsid()
        furnish(cluster, name)
        wait_for_links()
        network.set_up(cluster, name)
        netns_node.configure(False, shrink=1.0)
        start(f"slurmd.{name}", ["slurmd", "-D", "-N", name], log)
        while True:
            reap()
            time.sleep(POLL_S)
    except BaseException as error:
        (log / f"{name}.log").write_text(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(1)


def furnish(cluster: SmallCluster, host: str) -> None:
    """Files that every machine of the cluster has: host names, and Slurm's configuration at its default path, since
    commands in jobs lose SLURM_CONF."""
    names = {name: cluster.address(name) for name in (HEAD, *cluster.names)}
    namespaces.furnish(host, {**names, os.uname().nodename: cluster.address("host")}, cluster.folder)
    Path("/etc/slurm").mkdir(exist_ok=True)
    namespaces.bind(cluster.folder / "etc", Path("/etc/slurm"))


def start(name: str, command: list[str], log: Path) -> None:
    """Start a daemon with its output in a file."""
    with (log / f"{name}.out").open("wb") as out:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, "PATH": PATH},
        )


def reap() -> None:
    """Reap all children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def main() -> int:
    """Wait until this process is killed."""
    cluster = read_cluster(Path(sys.argv[1]))
    if cluster is None:
        raise SystemExit(f"{sys.argv[1]} describes no cluster")
    coordinator = ClusterCoordinator(cluster)
    coordinator.build()
    coordinator.watch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
