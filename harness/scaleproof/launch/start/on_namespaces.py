"""Launches and single commands on nodes of namespaces: writes namespaces.json from a case, and gives the command of the
coordinator that builds the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.fabric.netns.netns import COORDINATOR, NetnsOptions, coordinator_command
from scaleproof.fabric.netns.netns_plan import NamespacePlan
from scaleproof.fabric.topology import emulated_network
from scaleproof.launch.launchers.launcher_contract import Launcher, ranks_of
from scaleproof.launch.start.node_command import CommandResult, one_per_node, run_on_nodes
from scaleproof.rank.process_lifetime import ending_with_this_process
from scaleproof.spec import registry
from scaleproof.spec.cluster import Cluster, cluster_of, node_name, slowed


class NamespacesLauncher(Launcher):
    """One coordinator, which makes the nodes. With launcher `local` it imports the modules of ranks and forks the ranks
    on the nodes; `mpirun` and `mpich` run on the first node."""

    def __init__(self, launcher: str) -> None:
        self.launcher = launcher
        self.waits_for_go = not registry.get("launcher", launcher).process_per_rank

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """Writes namespaces.json; the coordinator lives no longer than the supervisor."""
        case = launch_spec.parsed_case
        cluster = slowed(cluster_of(case), case.dilation, case.shrink)
        ranks = [ranks_of(node, case.nodes, case.ranks) for node in range(case.nodes)]
        commands, module = list[list[str]](), "scaleproof.rank.fork_in_namespaces"
        if registry.get("launcher", self.launcher).process_per_rank:
            hosts = {node_name(node): len(mine) for node, mine in enumerate(ranks)}
            commands, module = (
                [self._inner().over_nodes(hosts, case.interface, folder), *[[]] * (case.nodes - 1)],
                COORDINATOR,
            )
        # In dilated time a second is longer, so that the share of each second that a node computes is smaller.
        cores = case.options_of(NetnsOptions).node_cores
        quota = None if cores is None else cores / case.dilation
        NamespacePlan(cluster, commands, ranks, quota, case.shrink).write(folder)
        return ending_with_this_process(coordinator_command(folder, module))

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """The variables of the launcher on the nodes."""
        return self._inner().environment(folder, launch_spec)

    def _inner(self) -> Any:
        return registry.load("launcher", self.launcher)()


def run_in_namespaces(
    command: Sequence[str] | Sequence[Sequence[str]],
    cluster: Cluster,
    *,
    cores: float | None = None,
    timeout_s: float = 120.0,
    keep: Path | None = None,
) -> CommandResult:
    """Run a command in every node of a cluster (or one command per node), in this working directory with this
    environment.

    Processes find SCALEPROOF_NODE, SCALEPROOF_ADDRESS (node n has fabric.plan.address(n)) and eth0, eth1, ...;
    SCALEPROOF_SHARED is a folder that all nodes and this machine share (`keep`, else a temporary one). Exit code 124:
    out of time."""
    emulated_network(cluster)  # SpecError here rather than in the coordinator
    plan = NamespacePlan(cluster, one_per_node(command, cluster.nodes), cores=cores)
    return run_on_nodes(
        cluster.nodes,
        plan.write,
        coordinator_command,
        timeout_s,
        keep,
    )
