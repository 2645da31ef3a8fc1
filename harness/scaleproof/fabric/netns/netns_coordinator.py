"""`python -m scaleproof.fabric.netns.netns_coordinator FOLDER`: builds the cluster of namespaces.json, runs every
node's command, and ends when they have ended.

It is the first process of its own process and network namespaces: the kernel ends every node and removes every link
when it has ended, however it ended."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json
from scaleproof.core.counters import Counters, difference, read_counters
from scaleproof.core.location import PROC
from scaleproof.fabric.netns import namespaces, netns_node, node_shell, veth_links
from scaleproof.fabric.netns.core_quota import Quota
from scaleproof.fabric.netns.netns_plan import NamespacePlan, read_plan
from scaleproof.fabric.node_coordinator import LaunchCoordinator, Node
from scaleproof.fabric.topology import emulated_network
from scaleproof.spec.link_rates import MTU

KIND = "netns"
# Folder in the launch's folder at which nodes find the supervisor's /proc.
OUTER_PROC = "proc"


class NamespaceCoordinator(LaunchCoordinator):
    """Nodes that share this machine's kernel."""

    # 0.1 s a node on a quiet machine.
    BOOT_LIMIT_S = {KIND: 60.0}

    def __init__(self, folder: Path, plan: NamespacePlan, command: netns_node.Command) -> None:
        super().__init__(folder, KIND, plan.ranks)
        self.plan, self.command = plan, command
        self.network = emulated_network(plan.cluster)
        self.quota: Quota | None = None
        self.netem, self.relays = False, list[int]()

    def build(self) -> None:
        """See NodeCoordinator."""
        namespaces.keep_mounts_private()
        outer = self.folder / OUTER_PROC
        outer.mkdir()
        namespaces.bind(Path("/proc"), outer)
        namespaces.mount("proc", Path("/proc"))
        os.environ.update({PROC: str(outer), node_shell.FOLDER: str(self.folder)})
        self.netem = veth_links.has_netem()
        if self.plan.cores:
            self.quota = Quota(Path(os.environ["TMPDIR"]).name, self.plan.nodes, self.plan.cores)
        processes = [netns_node.start(self, number) for number in range(self.plan.nodes)]
        self.nodes = [Node(number, process, time.monotonic()) for number, process in enumerate(processes)]
        self.relays = veth_links.make(self.network, [process.pid for process in processes], self.netem)
        for process in processes:
            process.announce_links()

    def check_network(self) -> None:
        """See LaunchCoordinator; also ends the launch when a relay has ended, since its link would only seem slow."""
        super().check_network()
        for process in self.relays:
            if os.waitpid(process, os.WNOHANG)[0]:
                raise SystemExit("the process that delays a link has ended, and the link with it")

    def ends_by_itself(self, node: Node) -> bool:
        """See LaunchCoordinator."""
        return not self.plan.commands or bool(self.plan.commands[node.number])

    def set_link(self, number: int, up: bool) -> None:
        """See NodeCoordinator."""
        veth_links.set_links(self.network, number, up)

    def report(self) -> dict[str, Any]:
        """See LaunchCoordinator."""
        reports, cluster = self.node_reports(), self.plan.cluster
        delayed = any(link.delay_ms for link in self.network.links)
        return {
            "kind": KIND,
            "nodes": self.plan.nodes,
            "cluster": cluster.name,
            "mtu": MTU,
            "congestion": netns_node.congestion(),
            "links": [
                {"ends": list(link.ends), "mbit": link.mbit, "delay_ms": link.delay_ms} for link in self.network.links
            ],
            "delayed_by": ("netem" if self.netem else "relay") if delayed else None,
            "quota": self.quota and self.quota.report(),
            "found": [node and node["link"] for node in reports],
            "booted_s": [node and node["booted_s"] for node in reports],
            "moved": [report and self._moved(node, report) for node, report in zip(self.nodes, reports, strict=True)],
        }

    def clean_up(self) -> None:
        """See LaunchCoordinator."""
        if self.quota:
            self.quota.remove()

    def _moved(self, node: Node, report: dict[str, Any]) -> Counters | None:
        """Bytes and packets over each of a node's links since its command began; None when it was killed."""
        ended = read_json(self.folder / f"node-{node.number}.end")
        try:
            after = ended["counters"] if ended else read_counters(node.process.pid)
        except (KeyError, OSError):
            return None
        return {name: moved for name, moved in difference(report["counters"], after).items() if name != "lo"}


def main() -> int:
    """The highest exit code of the nodes' commands."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder: Path = arguments.parse_args().folder
    plan = read_plan(folder)
    return NamespaceCoordinator(folder, plan, partial(netns_node.run, folder, plan)).run()


if __name__ == "__main__":
    sys.exit(main())
