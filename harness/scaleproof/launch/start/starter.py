"""Chooses what starts a case's ranks: its launcher, the coordinator of a fabric that makes nodes, or the coordinator of
an allocation."""

from __future__ import annotations

import importlib

from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.launch.nodes.start_on_nodes import NodesLauncher
from scaleproof.spec import registry


def launcher_for(fabric: str, launcher: str, placement: NodePlacement | None = None) -> Launcher:
    """The launcher of a case. On nodes that a fabric makes and on those of an allocation, a process on each node starts
    the ranks."""
    if placement is not None:
        return NodesLauncher(placement, launcher)
    if starter := registry.get("fabric", fabric).starter:
        module_name, _, attribute = starter.partition(":")
        on_nodes: Launcher = getattr(importlib.import_module(module_name), attribute)(launcher)
        return on_nodes
    alone: Launcher = registry.load("launcher", launcher)()
    return alone
