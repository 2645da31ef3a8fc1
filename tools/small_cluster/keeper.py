"""`python -m tools.small_cluster.keeper FOLDER`: builds the cluster of a folder, and follows orders.json until it is
killed.

It is the first process of its own process and network namespaces: the kernel ends every daemon, node and link when it
is gone, however it went."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.fabric.netns import namespaces, netns_node
from scaleproof.fabric.small_clusters import HEAD, SmallCluster, read_cluster
from tools.small_cluster import network

ORDERS, NODES = "orders.json", "nodes.json"
"""By anyone: the nodes without power (`off`) and without cable (`cut`), under a `number`. By the keeper: the first
process of each node, as it sees them, and the number of the orders that it followed."""
POLL_S = 0.1
UPLINK_S = 20.0
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class ClusterKeeper:
    """The cluster while it lives."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster, self.folder = cluster, cluster.folder
        self.pids = dict[str, int]()

    def build(self) -> None:
        """Network, daemons, nodes."""
        namespaces.unshare(namespaces.UTS | namespaces.IPC)
        furnish(self.cluster, HEAD)
        until = time.monotonic() + UPLINK_S
        while not network.uplinked():
            if time.monotonic() > until:
                raise SystemExit("nobody connected the cluster: who made it is gone")
            time.sleep(0.01)
        network.make_switches(self.cluster)
        etc, log = self.folder / "etc", self.folder / "log"
        munged = [
            "munged",
            "--foreground",
            f"--key-file={etc}/munge.key",
            f"--socket={self.folder}/munge.socket",
            f"--pid-file={self.folder}/munged.pid",
        ]
        # Seeds and logs of its own: nothing of the machine's munge is touched.
        start("munged", [*munged, f"--log-file={log}/munged.log", f"--seed-file={self.folder}/munged.seed"], log)
        while not (self.folder / "munge.socket").is_socket():
            time.sleep(0.01)
        start("slurmctld", ["slurmctld", "-D", "-c"], log)
        self.follow({"off": [], "cut": [], "number": 0})

    def follow(self, orders: dict[str, Any]) -> None:
        """Nodes without power have no process; cables are in or out."""
        for name in self.cluster.names:
            if name in orders["off"] and name in self.pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pids.pop(name), signal.SIGKILL)
            elif name not in orders["off"] and name not in self.pids:
                self.pids[name] = boot(self.cluster, name)
            network.set_link(name, name not in orders["cut"])
        write_json(self.folder / NODES, {"pids": self.pids, "number": orders["number"]})

    def keep(self) -> None:
        """Never returns. Reaps whatever has ended, a node that ended by itself too: it stays off until it is ordered
        off and on."""
        seen = None
        while True:
            orders = read_json(self.folder / ORDERS)
            if orders is not None and orders != seen:
                seen = orders
                self.follow(orders)
            reap()
            time.sleep(POLL_S)


def boot(cluster: SmallCluster, name: str) -> int:
    """Fork a node and plug its cable; its first process."""
    waits, go = os.pipe()

    def be() -> None:
        os.close(go)
        _be(cluster, name, waits)

    try:
        pid = namespaces.born(namespaces.NET | namespaces.UTS | namespaces.IPC | namespaces.MOUNT, be)
    finally:
        os.close(waits)
    network.plug(cluster, name, pid)
    os.write(go, b"+")
    os.close(go)
    return pid


def _be(cluster: SmallCluster, name: str, waits: int) -> None:
    """Never returns: sets the node up, starts its slurmd, and reaps its orphans."""
    log = cluster.folder / "log"
    try:
        os.setsid()
        furnish(cluster, name)
        if os.read(waits, 1) != b"+":
            os._exit(1)
        network.set_up(cluster, name)
        netns_node.settle(False, shrink=1.0)
        start(f"slurmd.{name}", ["slurmd", "-D", "-N", name], log)
        while True:
            reap()
            time.sleep(POLL_S)
    except BaseException as error:
        (log / f"{name}.log").write_text(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(1)


def furnish(cluster: SmallCluster, host: str) -> None:
    """What every machine of the cluster has: its names, and the configuration where Slurm looks for it by itself, for
    what runs in jobs loses SLURM_CONF."""
    names = {name: cluster.address(name) for name in (HEAD, *cluster.names)}
    namespaces.furnish(host, {**names, os.uname().nodename: cluster.address("host")}, cluster.folder)
    Path("/etc/slurm").mkdir(exist_ok=True)
    namespaces.bind(cluster.folder / "etc", Path("/etc/slurm"))


def start(name: str, command: list[str], log: Path) -> None:
    """A daemon, its output in a file."""
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
    """All that has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def main() -> int:
    """Until it is killed."""
    cluster = read_cluster(Path(sys.argv[1]))
    if cluster is None:
        raise SystemExit(f"{sys.argv[1]} describes no cluster")
    keeper = ClusterKeeper(cluster)
    keeper.build()
    keeper.keep()
    return 0


if __name__ == "__main__":
    sys.exit(main())
