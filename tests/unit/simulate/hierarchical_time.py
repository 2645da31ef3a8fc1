"""The time of a hierarchical all-reduce in closed form, against which the simulator is checked."""

from __future__ import annotations

from scaleproof.simulate.closed_form import ring_all_gather, ring_all_reduce, ring_reduce_scatter


def hierarchical_all_reduce(
    nodes: int, per_node: int, n: float, inside: tuple[float, float], between: tuple[float, float], g: float
) -> float:
    """Ring reduce-scatter inside nodes, ring all-reduce of that share between ranks with the same local rank, ring
    all-gather inside nodes. `inside`, `between`: (a, b). The `per_node` rings between nodes share every node's
    link."""
    share = n / per_node
    first = ring_reduce_scatter(per_node, n, *inside, g) + ring_all_gather(per_node, n, *inside)
    return first + ring_all_reduce(nodes, share, between[0], between[1] * per_node, g)
