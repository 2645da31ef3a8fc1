"""Launches over the nodes of an allocation: writes nodes.json from a launch's placement, and gives the command of the
coordinator that starts the agents."""

from __future__ import annotations

import sys
from pathlib import Path

from scaleproof.core.atomic_write import write_json
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.fabric.verbs import netdev
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.launch.launchers.mpirun import Mpirun
from scaleproof.launch.nodes.allocated_nodes import NodePlacement, address_towards
from scaleproof.launch.nodes.coordinator import FILE
from scaleproof.launch.nodes.discovery import starters
from scaleproof.launch.nodes.start_ranks import BY_FIRST_NODE
from scaleproof.rank.process_lifetime import ending_with_this_process
from scaleproof.transports.mpich import ON_ONE_MACHINE, between_nodes


class NodesLauncher(Launcher):
    """One coordinator, which starts an agent on each node of the placement; agents start the ranks."""

    def __init__(self, placement: NodePlacement, launcher: str) -> None:
        self.placement, self.launcher = placement, launcher

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """Writes nodes.json; the coordinator lives no longer than the supervisor."""
        placement = self.placement
        hosts = [node.name for node in placement.nodes]
        inner = self.launcher if self.launcher in BY_FIRST_NODE else placement.allocation.inner
        header = {
            "hosts": hosts,
            "addresses": placement.addresses,
            "ranks": placement.ranks,
            "streamed": placement.streamed,
            "inner": inner,
            "interface": netdev(placement.interface),
            "rendezvous": placement.allocation.rendezvous,
            "world": int(launch_spec.case["ranks"]),
        }
        write_json(
            folder / FILE,
            {
                "hosts": hosts,
                "ranks": placement.ranks,
                "address": address_towards(placement.addresses[-1]),
                "header": header,
                "starters": starters(placement.allocation, hosts, launch_spec.launch),
                "files": sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".log"),
            },
        )
        return ending_with_this_process([sys.executable, "-m", "scaleproof.launch.nodes.coordinator", str(folder)])

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """The variables of the program that starts the ranks."""
        if self.launcher == "mpich":
            return (
                between_nodes(netdev(self.placement.interface))
                if len(self.placement.nodes) > 1
                else dict(ON_ONE_MACHINE)
            )
        return Mpirun().environment(folder, launch_spec)
