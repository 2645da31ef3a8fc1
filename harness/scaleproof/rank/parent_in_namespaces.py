"""The parent of ranks on nodes of namespaces: imports the modules that the case needs once, builds the cluster of
namespaces.json, and forks the ranks on its nodes."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from scaleproof.core.go_signal import WAIT_FOR_GO
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.fabric.netns.netns_coordinator import NamespaceCoordinator
from scaleproof.fabric.netns.netns_plan import NamespacePlan, read_plan
from scaleproof.rank.parent import fork_rank, imported, reap


def main() -> int:
    """Run all ranks; returns their worst exit code."""
    folder = Path(sys.argv[1])
    launch_spec, plan = imported(folder, WAIT_FOR_GO in sys.argv), read_plan(folder)
    return NamespaceCoordinator(folder, plan, partial(run_ranks, folder, launch_spec, plan)).run()


def run_ranks(folder: Path, launch_spec: LaunchSpec, plan: NamespacePlan, node: int) -> int:
    """Called on a node, in its first process: fork its ranks and wait for their end."""
    return reap(folder, {fork_rank(folder, rank, launch_spec): rank for rank in plan.ranks[node]}, launch_spec)
