"""The hardware of this machine: cores, memory, disk, and ports of verbs devices."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import Any

import psutil

from scaleproof.fabric.verbs import ports
from scaleproof.record.environment import cores, cpu_model


def machine(results: Path) -> dict[str, Any]:
    """Cores, memory, disk of the results folder (bytes), kernel, Python."""
    memory = psutil.virtual_memory()
    existing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    return {
        "cores": cores(),
        "processor": cpu_model(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "disk_free_bytes": shutil.disk_usage(existing).free,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def verbs_ports() -> list[dict[str, Any]]:
    """Every port of every verbs device: name, link layer, state, interfaces, whether it is emulated in software, and
    its GIDs by index."""
    return [
        {
            "name": port.name,
            "link_layer": port.link_layer,
            "state": port.state,
            "lid": port.lid,
            "netdevs": list(port.netdevs),
            "software": port.software,
            "gids": [
                {"index": gid.index, "value": gid.value, "kind": gid.kind, "netdev": gid.netdev} for gid in port.gids
            ],
        }
        for port in ports()
    ]
