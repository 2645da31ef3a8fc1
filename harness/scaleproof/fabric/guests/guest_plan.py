"""guests.json: the nodes that a coordinator boots, their network and their commands. Also constants that emulated nodes
of any kind share."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = "guests.json"
REPORT = "fabric.json"
"""Written by the coordinator: the network as configured and as measured, and the counts of a capture."""
LINKS = "links.json"
"""Request to the coordinator, written into the same folder: whether each node's cable is plugged in."""
INTERFACE = "eth0"
"""Network interface of every node; `rxe0` is soft-RoCE on it."""


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """Node n runs `commands[n]`, whose ranks are `ranks[n]` (empty: no launch). Rate in Mbit/s (None: unshaped), delay
    one way in ms, memory per node in MiB."""

    nodes: int
    commands: list[list[str]]
    ranks: list[list[int]] = field(default_factory=list)
    kind: str = "uml"
    memory_mib: int = 1536
    cpus: int = 1
    """Processors of a node under QEMU; a User-Mode Linux kernel has one."""
    link_mbit: float | None = None
    link_delay_ms: float = 0.0
    capture: bool = False
    mtu: int = 4500
    """Bytes; RoCE's largest path MTU is 4096, and its headers take at least 58 more."""
    cwd: str = field(default_factory=os.getcwd)

    def write(self, folder: Path) -> None:
        """Writes the plan into the folder that coordinator and nodes share."""
        (folder / FILE).write_text(json.dumps(asdict(self)))


def read_plan(folder: Path) -> GuestPlan:
    """Reads the plan from that folder."""
    return GuestPlan(**json.loads((folder / FILE).read_text()))


def address(node: int) -> str:
    """A node's address on eth0, network 10.77.0.0/16."""
    return f"10.77.{node // 250}.{node % 250 + 1}"
