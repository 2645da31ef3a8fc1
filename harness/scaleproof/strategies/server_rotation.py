"""Which server has which parameter."""

from __future__ import annotations

from scaleproof.spec.case import TrainCase
from scaleproof.workloads.layers import Norm
from scaleproof.workloads.networks import Network

MOVING = 2
"""Variables of a batch normalisation that are not trained: a moving mean and a moving variance."""


def owners(case: TrainCase, network: Network) -> list[int]:
    """The rank that serves each parameter: by turns over the first `servers` ranks (0: over all), in network order."""
    servers = case.value("strategy.servers", 0) or case.ranks
    moving = MOVING if case.value("strategy.rotation", "trained") == "all" else 0
    turn, served = 0, list[int]()
    for layer in network.layers:
        served += [(turn + number) % servers for number in range(len(layer.variables))]
        turn += len(layer.variables) + (moving if isinstance(layer.spec, Norm) else 0)
    return served
