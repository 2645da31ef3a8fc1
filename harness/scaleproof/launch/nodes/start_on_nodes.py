"""Launches over the nodes of an allocation: from a launch's site to nodes.json, and to the keeper that starts the
agents."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scaleproof.core.atomic_write import write_json
from scaleproof.core.launch_spec import Orders
from scaleproof.fabric.verbs import netdev
from scaleproof.launch.launchers.mpirun import Mpirun
from scaleproof.launch.nodes.allocated_nodes import Site, address_towards
from scaleproof.launch.nodes.coordinator import FILE
from scaleproof.launch.nodes.discovery import starters
from scaleproof.launch.nodes.start_ranks import BY_FIRST_NODE
from scaleproof.transports.mpich import ON_ONE_MACHINE, between_nodes


class OverNodes:
    """One keeper, which starts an agent on each node of the site; agents start the ranks."""

    def __init__(self, site: Site, launcher: str) -> None:
        self.site, self.launcher = site, launcher

    def command(self, folder: Path, orders: Orders) -> list[str]:
        """Writes nodes.json; the keeper's life hangs on the supervisor's."""
        site, hosts = self.site, [node.name for node in self.site.nodes]
        inner = self.launcher if self.launcher in BY_FIRST_NODE else site.allocation.inner
        header = {
            "hosts": hosts,
            "addresses": site.addresses,
            "ranks": site.ranks,
            "streamed": site.streamed,
            "inner": inner,
            "interface": netdev(site.interface),
            "rendezvous": site.allocation.rendezvous,
            "world": int(orders.case["ranks"]),
        }
        write_json(
            folder / FILE,
            {
                "hosts": hosts,
                "ranks": site.ranks,
                "address": address_towards(site.addresses[-1]),
                "header": header,
                "starters": starters(site.allocation, hosts, orders.launch),
                "files": sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".log"),
            },
        )
        return [
            sys.executable,
            "-m",
            "scaleproof.rank.tie",
            str(os.getpid()),
            sys.executable,
            "-m",
            "scaleproof.launch.nodes.coordinator",
            str(folder),
        ]

    def environment(self, folder: Path, orders: Orders) -> dict[str, str]:
        """That of what starts the ranks."""
        if self.launcher == "mpich":
            return between_nodes(netdev(self.site.interface)) if len(self.site.nodes) > 1 else dict(ON_ONE_MACHINE)
        return Mpirun().environment(folder, orders)
