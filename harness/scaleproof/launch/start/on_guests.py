"""Launches and single commands in guests: writes guests.json from a case, and gives the command of the coordinator that
boots the nodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.fabric.guests.guest_plan import GuestPlan
from scaleproof.fabric.guests.guests import GuestOptions, coordinator_command
from scaleproof.launch.launchers.launcher_contract import Launcher, ranks_of
from scaleproof.launch.start.node_command import CommandResult, one_per_node, run_on_nodes
from scaleproof.rank.process_lifetime import ending_with_this_process


class GuestsLauncher(Launcher):
    """One coordinator, which boots the nodes and starts a parent in each."""

    def __init__(self, launcher: str) -> None:
        self.launcher = launcher

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """Writes guests.json; the coordinator lives no longer than the supervisor."""
        case = launch_spec.parsed_case
        nodes, ranks, options = case.nodes, case.ranks, case.options_of(GuestOptions)
        by_node = [ranks_of(node, nodes, ranks) for node in range(nodes)]
        parent = [sys.executable, "-m", "scaleproof.rank.fork_ranks", str(folder), "--ranks"]
        GuestPlan(
            nodes=nodes,
            commands=[[*parent, *map(str, of_node)] for of_node in by_node],
            ranks=by_node,
            kind=options.guest,
            link_mbit=options.link_mbit,
            link_delay_ms=options.link_delay_ms,
            capture=case.tracing == "full",
        ).write(folder)
        return ending_with_this_process(coordinator_command(folder))

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """No further variables."""
        return {}


def run_in_guests(
    command: Sequence[str] | Sequence[Sequence[str]], *, timeout_s: float = 120.0, keep: Path | None = None, **plan: Any
) -> CommandResult:
    """Run a command in every node of a network of guests (or one command per node), in this working directory with this
    environment.

    Processes find SCALEPROOF_NODE, SCALEPROOF_ADDRESS (node n has fabric.plan.address(n)), eth0 and rxe0;
    SCALEPROOF_SHARED is a folder that all nodes and this machine share (`keep`, else a temporary one). `plan`: fields
    of GuestPlan: nodes, kind, memory_mib, link_mbit, link_delay_ms, capture. Exit code 124: out of time."""
    nodes = int(plan.pop("nodes", 1))
    planned = GuestPlan(nodes=nodes, commands=one_per_node(command, nodes), **plan)
    return run_on_nodes(nodes, planned.write, coordinator_command, timeout_s, keep)
