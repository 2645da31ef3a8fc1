"""namespaces.json: the cluster that a coordinator builds of namespaces, and the commands of its nodes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scaleproof.spec.cluster import Cluster, Link

FILE = "namespaces.json"


@dataclass(frozen=True, slots=True)
class NamespacePlan:
    """Node n runs `commands[n]` (empty: it waits until the others have ended), whose ranks are `ranks[n]` (empty: no
    launch)."""

    cluster: Cluster
    """The cluster to build: after dilation and shrink."""
    commands: list[list[str]] = field(default_factory=list)
    ranks: list[list[int]] = field(default_factory=list)
    cores: float | None = None
    """Processor time that a node gets, in cores; None: no limit."""
    shrink: float = 1.0
    """Factor by which messages are smaller than the case's; socket buffers shrink with them."""
    cwd: str = field(default_factory=os.getcwd)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.cluster.nodes

    def write(self, folder: Path) -> None:
        """Writes the plan into the folder that coordinator and nodes share."""
        (folder / FILE).write_text(json.dumps(asdict(self)))


def read_plan(folder: Path) -> NamespacePlan:
    """Reads the plan from that folder."""
    values = json.loads((folder / FILE).read_text())
    cluster = values.pop("cluster")
    links = tuple(Link(tuple(link["ends"]), link["mbit"], link["delay_ms"]) for link in cluster["links"])
    return NamespacePlan(Cluster(cluster["name"], cluster["nodes"], tuple(cluster["switches"]), links), **values)
