"""`python -m scaleproof.fabric.netns.netns_coordinator FOLDER`: builds the cluster of namespaces.json, runs every
node's command, and ends when they have ended.

It is the first process of its own process and network namespaces: the kernel ends every node and removes every link
when it is gone, however it went."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.counters import Counters, difference, read_counters
from scaleproof.core.location import PROC
from scaleproof.fabric.guests.guest_plan import REPORT
from scaleproof.fabric.netns import namespaces, netns_node, node_shell, veth_links
from scaleproof.fabric.netns.core_quota import Quota
from scaleproof.fabric.netns.netns_plan import NamespacePlan, read_plan
from scaleproof.fabric.nodes import Keeper, Node
from scaleproof.fabric.topology import network_of

KIND = "netns"
OUTER = "proc"
"""Folder of the launch under which nodes find /proc as the supervisor has it."""


class Forked:
    """A child by its number, as subprocess.Popen is one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def poll(self) -> int | None:
        """See Process."""
        if self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if ended else None
        return self.code

    def wait(self) -> int:
        """See Process."""
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


class NamespaceKeeper(Keeper):
    """Nodes that share this machine's kernel."""

    BOOT_S = {KIND: 60.0}
    """0.1 s a node on a quiet machine."""

    def __init__(self, folder: Path, plan: NamespacePlan, command: netns_node.Command) -> None:
        super().__init__(folder, KIND, plan.ranks)
        self.plan, self.command = plan, command
        self.network = network_of(plan.cluster)
        self.quota: Quota | None = None
        self.netem, self.relays = False, list[int]()

    def boot(self) -> None:
        """See Keeper."""
        namespaces.keep_mounts_private()
        outer = self.folder / OUTER
        outer.mkdir()
        namespaces.bind(Path("/proc"), outer)
        namespaces.mount("proc", Path("/proc"))
        os.environ.update({PROC: str(outer), node_shell.FOLDER: str(self.folder)})
        self.netem = veth_links.has_netem()
        if self.plan.cores:
            self.quota = Quota(Path(os.environ["TMPDIR"]).name, self.plan.nodes, self.plan.cores)
        pipes = []
        for number in range(self.plan.nodes):
            pid, pipe = netns_node.start(self, number)
            self.nodes.append(Node(number, Forked(pid), time.monotonic()))
            pipes.append(pipe)
        self.relays = veth_links.make(self.network, [node.process.pid for node in self.nodes], self.netem)
        for pipe in pipes:
            os.write(pipe, b"+")
            os.close(pipe)

    def look_at_network(self) -> None:
        """See Keeper; a link whose relay has ended would only look slow."""
        super().look_at_network()
        for process in self.relays:
            if os.waitpid(process, os.WNOHANG)[0]:
                raise SystemExit("the process that delays a link has ended, and the link with it")

    def works(self, node: Node) -> bool:
        """See Keeper."""
        return not self.plan.commands or bool(self.plan.commands[node.number])

    def set_link(self, number: int, up: bool) -> None:
        """See Keeper."""
        veth_links.set_links(self.network, number, up)

    def report(self) -> dict[str, Any]:
        """See Keeper."""
        found, cluster = self.found(), self.plan.cluster
        delayed = any(link.delay_ms for link in self.network.links)
        return {
            "kind": KIND,
            "nodes": self.plan.nodes,
            "cluster": cluster.name,
            "mtu": veth_links.MTU,
            "congestion": netns_node.congestion(),
            "links": [
                {"ends": list(link.ends), "mbit": link.mbit, "delay_ms": link.delay_ms} for link in self.network.links
            ],
            "delayed_by": ("netem" if self.netem else "relay") if delayed else None,
            "quota": self.quota and self.quota.told(),
            "found": [node and node["link"] for node in found],
            "booted_s": [node and node["booted_s"] for node in found],
            "moved": [told and self._moved(node, told) for node, told in zip(self.nodes, found, strict=True)],
            "wire": None,
        }

    def _moved(self, node: Node, told: dict[str, Any]) -> Counters | None:
        """Bytes and packets over each of a node's links since its command began; None when it was killed."""
        ended = read_json(self.folder / f"node-{node.number}.end")
        try:
            after = ended["counters"] if ended else read_counters(node.process.pid)
        except (KeyError, OSError):
            return None
        return {name: moved for name, moved in difference(told["counters"], after).items() if name != "lo"}


def keep(folder: Path, plan: NamespacePlan, command: netns_node.Command) -> int:
    """Until all nodes have ended; the worst exit code of their commands."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    keeper = NamespaceKeeper(folder, plan, command)
    keeper.boot()
    code = keeper.wait()
    write_json(folder / REPORT, keeper.report())
    keeper.end_waiting()
    if keeper.quota:
        keeper.quota.remove()
    return code


def main() -> int:
    """The worst exit code of the nodes' commands."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder: Path = arguments.parse_args().folder
    plan = read_plan(folder)
    return keep(folder, plan, partial(netns_node.run, folder, plan))


if __name__ == "__main__":
    sys.exit(main())
