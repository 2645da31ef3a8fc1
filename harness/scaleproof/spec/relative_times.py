"""One case on nodes of several types: how much longer each rank computes than one on a node of the case's profile."""

from __future__ import annotations

from scaleproof.spec.case import AnyCase
from scaleproof.spec.mixed_nodes import other_nodes


def relative_times(case: AnyCase) -> tuple[float, ...]:
    """Of each rank; empty where all nodes are of one type. Times by a peak rate are FLOP over a rate, so that one
    factor holds for every layer. Raises SpecError for an unknown node type."""
    others = case.value("compute.others")
    if others is None:
        return ()
    from scaleproof.spec.gpu_node import rank_type  # reads YAML, which a rank on equal nodes does not

    rate = rank_type(case.value("compute.profile")).peak_flops * case.value("compute.efficiency")
    listed = other_nodes(others)
    of_nodes = [1.0] * (case.nodes - sum(each.count for each in listed))
    for each in listed:
        of_nodes += [rate / (rank_type(each.profile).peak_flops * each.efficiency)] * each.count
    return tuple(of_nodes[rank * case.nodes // case.ranks] for rank in range(case.ranks))
