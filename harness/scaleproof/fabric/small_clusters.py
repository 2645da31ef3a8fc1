"""Folders of small clusters (tools/small_cluster): running clusters, and leftovers of dead ones. The kernel ends all
processes and links of a cluster with its coordinator, so that only a folder can be left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from scaleproof.core.atomic_write import write_json

HOME = Path("/run/scaleproof/clusters")
FILE, LOCK = "cluster.json", ".lock"
SAFE = 0o755
"""Mode of folders above munge's key and socket, whatever the user's umask: munge refuses folders that a group may
write."""
HEAD = "head"
"""Name of the node on which slurmctld runs."""


@dataclass(frozen=True, slots=True)
class SmallCluster:
    """A cluster that was started. Its coordinator is identified by process id and start time, since process ids are
    reused."""

    name: str
    nodes: int
    network: int
    """Addresses 10.78.NETWORK.*"""
    cpus: int
    rate_mbit: float | None
    gpus: int
    pid: int = 0
    started: float = 0.0

    @property
    def folder(self) -> Path:
        """Configuration, key, logs, and requests to its coordinator."""
        return HOME / self.name

    @property
    def configuration(self) -> Path:
        """Path for SLURM_CONF."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def names(self) -> list[str]:
        """Names of the nodes: node1, node2, ..."""
        return [f"node{number}" for number in range(1, self.nodes + 1)]

    def address(self, name: str) -> str:
        """Address of a node, of `head`, or of this machine as seen from nodes (`host`)."""
        last = {HEAD: 253, "host": 254}.get(name) or self.names.index(name) + 1
        return f"10.78.{self.network}.{last}"

    def write(self) -> None:
        """Writes the description into the cluster's folder."""
        write_json(self.folder / FILE, asdict(self))

    def alive(self) -> bool:
        """Whether its coordinator runs."""
        try:
            process = psutil.Process(self.pid)
            return self.pid > 0 and process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def read_cluster(folder: Path) -> SmallCluster | None:
    """Reads the description; None if the folder has none, or one of another version."""
    try:
        return SmallCluster(**json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def clusters() -> list[SmallCluster]:
    """All running clusters."""
    written = [read_cluster(folder) for folder in sorted(HOME.glob("*/"))]
    return [cluster for cluster in written if cluster and cluster.alive()]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A lock: one cluster is started at a time, so that each finds a free network."""
    for folder in (HOME.parent, HOME):
        folder.mkdir(mode=SAFE, exist_ok=True)
    with (HOME / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def leftovers() -> list[Path]:
    """Folders of clusters whose coordinator has ended; empty while a cluster is being started."""
    try:
        with (HOME / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return [
                folder
                for folder in sorted(HOME.glob("[!.]*/"))
                if (cluster := read_cluster(folder)) is None or not cluster.alive()
            ]
    except (FileNotFoundError, BlockingIOError):
        return []


def remove(folder: Path) -> None:
    """Removes a dead cluster's folder."""
    shutil.rmtree(folder, ignore_errors=True)
