"""Launches and single commands on nodes of namespaces: from a case to namespaces.json, and to the keeper that builds its cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.fabric.netns import keeper_command
from harness.fabric.netns_plan import NamespacePlan
from harness.launch.base import ranks_of
from harness.rank.orders import Orders
from harness.spec.case import parse_case
from harness.spec.cluster import cluster_of, slowed


class InNamespaces:
    """One keeper, which imports what ranks need, makes the nodes and forks the ranks in them."""

    def command(self, folder: Path, orders: Orders) -> list[str]:
        """Writes namespaces.json; the keeper's life hangs on the supervisor's."""
        case = parse_case(orders.case)
        cluster = slowed(cluster_of(case), case.dilation, case.shrink)
        NamespacePlan(cluster, ranks=[ranks_of(node, case.nodes, case.ranks) for node in range(case.nodes)]).write(folder)
        return [sys.executable, "-m", "harness.rank.tie", str(os.getpid()), *keeper_command(sys.executable, "harness.rank.nodes", folder)]

    def environment(self, folder: Path, orders: Orders) -> dict[str, str]:
        """Nothing of its own."""
        return {}
