"""`python -m scaleproof.rank.fork_in_namespaces FOLDER`: imports what the case needs once, builds the cluster of
namespaces.json and forks every node's ranks in it."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec, read_launch_spec
from scaleproof.fabric.netns.netns_coordinator import NamespaceCoordinator
from scaleproof.fabric.netns.netns_plan import NamespacePlan, read_plan
from scaleproof.rank.fork_ranks import fork_rank, import_for, reap


def main() -> int:
    """The worst exit code of the ranks."""
    folder = Path(sys.argv[1])
    launch_spec, plan = read_launch_spec(folder), read_plan(folder)
    import_for(launch_spec)
    return NamespaceCoordinator(folder, plan, partial(run_ranks, folder, launch_spec, plan)).run()


def run_ranks(folder: Path, launch_spec: LaunchSpec, plan: NamespacePlan, node: int) -> int:
    """On a node, as its first process: its ranks, from their fork to their end."""
    return reap(folder, {fork_rank(folder, rank, launch_spec): rank for rank in plan.ranks[node]})


if __name__ == "__main__":
    # Without the interpreter's own teardown, which takes tens of milliseconds and has nothing to save here.
    os._exit(main())
