"""Classes of hops: what a message crosses on its way from one rank to another."""

from __future__ import annotations

from typing import Literal, get_args

Hop = Literal["same_process", "memory", "loopback", "one_link", "several_switches"]
HOPS: tuple[Hop, ...] = get_args(Hop)
"""From a rank to itself; between two ranks of a node through its memory, or through the kernel's loopback; between
nodes that a link or a switch connects; over several switches, or through further nodes."""


def hop_class(links: int, within_node: Hop) -> Hop:
    """The class of a message that crosses so many links."""
    if not links:
        return within_node
    return "one_link" if links <= 2 else "several_switches"
