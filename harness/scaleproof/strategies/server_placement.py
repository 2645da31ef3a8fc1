"""Which server has which parameter."""

from __future__ import annotations

from scaleproof.spec.case import TrainCase
from scaleproof.workloads.networks import Network


def owners(case: TrainCase, network: Network) -> list[int]:
    """The rank that serves each parameter, among the first `servers` ranks (0: all)."""
    servers = case.value("strategy.servers", 0) or case.ranks
    sizes = [variable.elements for layer in network.layers for variable in layer.variables]
    if case.value("strategy.placement", "turns") == "turns":
        return [index % servers for index in range(len(sizes))]
    held, served = [0] * servers, list[int]()
    for elements in sizes:
        owner = min(range(servers), key=held.__getitem__)
        held[owner] += elements
        served.append(owner)
    return served
