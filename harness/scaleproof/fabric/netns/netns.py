"""Nodes as network namespaces of this machine: a small cluster with configured rates and delays (docs/netns.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from pydantic import Field

from scaleproof.fabric.emulated_nodes import EmulatedNodes
from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.link_options import ClusterOptions
from scaleproof.fabric.topology import emulated_network
from scaleproof.fabric.unshare import OWN_MOUNTS, unshared
from scaleproof.spec.cluster import Cluster, cluster_of, slowed
from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plugins import FabricPlugin

COORDINATOR = "scaleproof.fabric.netns.netns_coordinator"
_TRIAL = (
    "mount -t proc proc /proc",
    "mount -t sysfs sysfs /sys",
    "mount -t tmpfs tmpfs /dev/shm",
    "ip link add name bridge0 type bridge",
    "ip link add name veth0 type veth peer name veth1",
    "tc qdisc add dev veth0 root tbf rate 1mbit burst 4kb limit 4kb",
)
TRIAL_S = 20.0
_DELAY_TRIAL = ("tc qdisc add dev lo root netem delay 1ms || test -w /dev/net/tun",)


class Netns(EmulatedNodes):
    """Ranks are processes in namespaces that a coordinator makes for the launch (netns_coordinator.py)."""

    fabric = "netns"

    def obstacle(self, case: CommonCase | None = None) -> tuple[str, str] | None:
        """Reason why such nodes, or this cluster, cannot be made here, and what to do; None if no reason is known."""
        try:
            return self._obstacle(slowed(cluster_of(case), case.dilation, case.shrink) if case else None)
        except subprocess.TimeoutExpired:
            return f"a trial of namespaces took longer than {TRIAL_S:g} s", "end other programs, then try again"

    def _obstacle(self, cluster: Cluster | None) -> tuple[str, str] | None:
        if wrong := self.wrong_interface():
            return wrong
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
        if missing := [name for name in ("unshare", "ip", "tc") if shutil.which(name, path=path) is None]:
            return f"no program {', '.join(missing)}", "type `apt-get install iproute2 util-linux`"
        if why := _failure(path, _TRIAL):
            advice = (
                "run as root (in a container with --cap-add SYS_ADMIN --cap-add NET_ADMIN), "
                "or use fabric `simulated`, which needs none"
            )
            return f"nodes of namespaces cannot be made: {why}", advice
        if cluster is None:
            return None
        try:
            emulated_network(cluster)
        except SpecError as error:
            return str(error), "change the cluster, `nodes`, `dilation` or `shrink`"
        if any(link.delay_ms for link in cluster.links) and _failure(path, _DELAY_TRIAL):
            return (
                "links with a delay need a kernel with netem, or /dev/net/tun",
                "give the container the device: --device /dev/net/tun",
            )
        return None


@cache
def _failure(path: str, trial: tuple[str, ...]) -> str:
    """The error of the first of these commands that fails in new namespaces; empty if none fails. Raises
    TimeoutExpired, which is not cached, when they take too long."""
    command = unshared(OWN_MOUNTS, ["sh", "-c", " && ".join(trial)])
    trial_run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TRIAL_S, env={**os.environ, "PATH": path}
    )
    if trial_run.returncode == 0:
        return ""
    lines = trial_run.stderr.strip().splitlines() or [f"ended with {trial_run.returncode}"]
    return lines[-1][:120]


def coordinator_command(folder: Path, module: str = COORDINATOR) -> list[str]:
    """Command that starts the coordinator of a folder with namespaces.json. Killing its first process ends all
    nodes."""
    return unshared(OWN_MOUNTS, [sys.executable, "-m", module, str(folder)])


class NetnsOptions(ClusterOptions):
    """Options of nodes made of namespaces."""

    node_cores: float | None = Field(
        None, gt=0, description="Processor time that each node gets, in cores; null: as much as there is."
    )


PLUGIN = FabricPlugin(
    name="netns",
    summary="nodes as network namespaces of this machine, set rates and delays",
    implementation=Netns,
    options=NetnsOptions,
    evidence="emulated",
    makes_nodes=True,
    starter="scaleproof.launch.start.on_namespaces:NamespacesLauncher",
    slows_links=True,
    interface=INTERFACE,
    node_per_rank=True,
)
