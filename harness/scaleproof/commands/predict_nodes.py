"""Numbers of nodes, and node types with GPUs, by the options of `scaleproof predict`."""

from __future__ import annotations

import argparse
import re
from typing import Any

from scaleproof.spec.errors import SpecError

MOST_NODES = 4096
NODES, GPU_NODES = "1..128", "1..16"
"""What is predicted unless an option says otherwise: on nodes of one rank, and on those with GPUs."""


def nodes_of(text: str, option: str = "--nodes") -> list[int]:
    """Numbers of nodes, ascending. `1..512` means both ends and the powers of two between them; `1,2,24` is a list."""
    span, listed = re.fullmatch(r"([0-9]+)\.\.([0-9]+)", text), re.fullmatch(r"[0-9]+(,[0-9]+)*", text)
    if span:
        first, last = int(span[1]), int(span[2])
        counts = sorted(
            {first, last, *(2**power for power in range(MOST_NODES.bit_length()) if first < 2**power < last)}
        )
    elif listed:
        counts = sorted({int(part) for part in text.split(",")})
    else:
        raise SpecError(f"{option} {text!r} is no number of nodes; write 1..128, or a list as 1,2,24")
    if counts[0] < 1 or (span and int(span[1]) > int(span[2])) or counts[-1] > MOST_NODES:
        raise SpecError(f"{option} {text}: give numbers from 1 to {MOST_NODES}, the smaller first")
    return counts


def ranks_per_node(options: argparse.Namespace) -> int:
    """As given, or one for each GPU of the node type; SpecError where the node type has fewer GPUs."""
    from scaleproof.spec.gpu_node import gpu_node

    asked: int | None = options.ranks_per_node
    if asked is not None and asked < 1:
        raise SpecError(f"--ranks-per-node {asked}: give at least one")
    if options.node is None:
        if asked is not None and asked > 1:
            raise SpecError("--ranks-per-node is for a node type with GPUs: give --node NAME")
        return 1
    gpus = gpu_node(options.node).gpus
    if asked is not None and asked > gpus:
        raise SpecError(f"--ranks-per-node {asked}: a rank has a GPU of its own, and {options.node} has {gpus}")
    return asked or gpus


def requested_nodes(options: argparse.Namespace, ranks: int) -> list[int]:
    """Numbers of nodes, by `--nodes` or `--ranks`."""
    if options.ranks is None:
        return nodes_of(options.nodes or _usual_nodes(options))
    counts = nodes_of(options.ranks, "--ranks")
    uneven = [count for count in counts if count % ranks]
    if uneven:
        raise SpecError(f"--ranks {options.ranks}: {uneven[0]} do not fill nodes of {ranks}; --nodes counts nodes")
    return [count // ranks for count in counts]


def _usual_nodes(options: argparse.Namespace) -> str:
    from scaleproof.spec.gpu_node import gpu_node

    if options.node is None:
        return NODES
    alone = options.fabric is None and gpu_node(options.node).network_gbit is None
    return "1" if alone else GPU_NODES


def fabric_of_node(name: str, most: int) -> tuple[dict[str, Any], str]:
    """One switch to which a node type's own network cards are connected, and its description."""
    from scaleproof.spec.gpu_node import gpu_node

    node = gpu_node(name)
    if node.network_gbit is None:
        if most > 1:
            raise SpecError(f"--node {name} says no network between nodes: give --fabric, or --nodes 1")
        return {}, "no network"
    each, cards = node.network_gbit / node.network_cards, node.network_cards
    description = f"one switch, {cards} card{'s' if cards > 1 else ''} of {each:g} Gbit/s on every node"
    return {"fabric.link_mbit": each * 1000, "fabric.cards": cards}, description


def node_description(options: argparse.Namespace, ranks: int) -> str:
    """The node type with its ranks and the links inside; empty without `--node`."""
    from scaleproof.spec.gpu_node import gpu_node

    if options.node is None:
        return ""
    node = gpu_node(options.node)
    if node.architecture is None:
        inside = "not modelled"
    elif not node.nvlinks:
        inside = f"PCI Express, {node.pcie_gb_per_s:g} GB/s"
    else:
        inside = f"{node.nvlinks} NVLinks a GPU, " + ("between pairs" if node.links else "to a switch")
    return f"{options.node}: {node.summary}; {ranks} rank{'s' if ranks > 1 else ''} a node; inside: {inside}"
