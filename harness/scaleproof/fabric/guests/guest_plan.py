"""guests.json: which nodes a coordinator boots, on which network, and what each of them runs; and what nodes of any
kind share."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = "guests.json"
REPORT = "fabric.json"
"""Written by the coordinator: the network as it was set and as it was measured, and what a capture counted."""
LINKS = "links.json"
"""Written by anyone into the same folder: node to whether its cable is plugged in; the coordinator follows it."""
INTERFACE = "eth0"
"""Of every node; `rxe0` is soft-RoCE on it."""


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """Node n runs `commands[n]`, whose ranks are `ranks[n]` (none: no launch). Rate in Mbit/s (None: unshaped), delay
    one way in ms, memory per node in MiB."""

    nodes: int
    commands: list[list[str]]
    ranks: list[list[int]] = field(default_factory=list)
    kind: str = "uml"
    memory_mib: int = 1536
    cpus: int = 1
    """Of a node under QEMU; a User-Mode Linux kernel has one."""
    link_mbit: float | None = None
    link_delay_ms: float = 0.0
    capture: bool = False
    mtu: int = 4500
    """Bytes; RoCE's largest path MTU is 4096 and takes 58 more at the least."""
    cwd: str = field(default_factory=os.getcwd)

    def write(self, folder: Path) -> None:
        """Into the folder that coordinator and nodes share."""
        (folder / FILE).write_text(json.dumps(asdict(self)))


def read_plan(folder: Path) -> GuestPlan:
    """From that folder."""
    return GuestPlan(**json.loads((folder / FILE).read_text()))


def address(node: int) -> str:
    """A node's address on eth0, network 10.77.0.0/16."""
    return f"10.77.{node // 250}.{node % 250 + 1}"
