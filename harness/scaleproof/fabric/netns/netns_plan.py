"""namespaces.json: the cluster that a coordinator builds out of namespaces, and what each of its nodes runs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scaleproof.spec.cluster import Cluster, Link

FILE = "namespaces.json"


@dataclass(frozen=True, slots=True)
class NamespacePlan:
    """Node n runs `commands[n]` (none: it waits until the others have ended), whose ranks are `ranks[n]` (none: no
    launch)."""

    cluster: Cluster
    """As it is built: after dilation and shrink."""
    commands: list[list[str]] = field(default_factory=list)
    ranks: list[list[int]] = field(default_factory=list)
    cores: float | None = None
    """Processor time that a node gets, in cores; None: no limit."""
    shrink: float = 1.0
    """By so much messages are smaller than the case's, and so are the buffers of sockets."""
    cwd: str = field(default_factory=os.getcwd)

    @property
    def nodes(self) -> int:
        """How many."""
        return self.cluster.nodes

    def write(self, folder: Path) -> None:
        """Into the folder that coordinator and nodes share."""
        (folder / FILE).write_text(json.dumps(asdict(self)))


def read_plan(folder: Path) -> NamespacePlan:
    """From that folder."""
    values = json.loads((folder / FILE).read_text())
    cluster = values.pop("cluster")
    links = tuple(Link(tuple(link["ends"]), link["mbit"], link["delay_ms"]) for link in cluster["links"])
    return NamespacePlan(Cluster(cluster["name"], cluster["nodes"], tuple(cluster["switches"]), links), **values)
