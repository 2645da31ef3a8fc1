"""What the modes of a search find beside searches with one objective."""

from __future__ import annotations

import math
from functools import lru_cache

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Published, network_of
from scaleproof.claims.metrics import Metric
from scaleproof.frontiers.cost_graph import CostGraph, frontier_of, within
from scaleproof.frontiers.one_objective import fastest, smallest
from scaleproof.frontiers.operators import divided
from scaleproof.frontiers.points import Frontier
from scaleproof.simulate.nccl.gpu_machine import gpu_machine

from .frontiers import NODE, OfNetwork
from .strategies import divided_layers


class OfLayers(Arguments):
    """The fully connected layers of experiment `times`."""

    features: str = Field(description="Of the input and of each layer, 512-512-256.")
    batch: Count = Field(description="Samples of a step, of all devices together.")
    flops: Amount = Field(description="FLOP/s of a device.")
    link_mbit: Amount = Field(description="Of a device.")
    devices: Count = Field(description="Ranks.")


@lru_cache(maxsize=8)
def _graph(x: OfNetwork | OfLayers) -> CostGraph:
    if isinstance(x, OfLayers):
        return divided_layers(x.features, x.batch, x.flops, 8 / (x.link_mbit * 1e6), x.devices).graph
    return divided(network_of(x.workload), x.batch, gpu_machine(NODE, x.devices), states=4).graph


@lru_cache(maxsize=1)  # claims about one network follow each other, and frontiers are large
def _exact(x: OfNetwork | OfLayers) -> Frontier:
    return frontier_of(_graph(x))


def mini_time_over_fastest(x: OfNetwork, rows: Published) -> float:
    """The time of the strategy that mini-time picks where memory has no end, over that of a search for time alone, as
    OptCNN's (suite tensoropt2022).

    mini_time_over_fastest = time of the last strategy of the exact frontier / least time of any strategy

    The frontier's time is that of the strategy that it names, added up anew. Arithmetic, no launches.
    """
    return _mini_time(x, math.inf) / fastest(_graph(x))[0]


def layers_mini_time_over_fastest(x: OfLayers, rows: Published) -> float:
    """The same of fully connected layers. See [mini_time_over_fastest](mini_time_over_fastest.md). Arithmetic, no
    launches (suite tensoropt2022)."""
    return _mini_time(x, math.inf) / fastest(_graph(x))[0]


def capped_over_fastest(x: OfNetwork, rows: Published) -> float:
    """The same where a device has the least memory that any strategy needs. See
    [mini_time_over_fastest](mini_time_over_fastest.md). Arithmetic, no launches (suite tensoropt2022)."""
    return _mini_time(x, float(_exact(x).memory[0])) / fastest(_graph(x))[0]


def least_memory_over_smallest(x: OfNetwork, rows: Published) -> float:
    """The memory of the frontier's smallest strategy over that of a search for memory alone, as ToFu's (suite
    tensoropt2022).

    least_memory_over_smallest = memory of the first strategy of the exact frontier / least memory of any strategy

    Added up anew, as the time of [mini_time_over_fastest](mini_time_over_fastest.md). Arithmetic, no launches.
    """
    return _graph(x).cost(_exact(x).choices(0))[0] / smallest(_graph(x))[0]


def _mini_time(x: OfNetwork | OfLayers, memory: float) -> float:
    found = _exact(x)
    return _graph(x).cost(found.choices(within(found, memory)))[1]


METRICS = [
    Metric("mini_time_over_fastest", "x", "lower", model=mini_time_over_fastest, x=OfNetwork),
    Metric("layers_mini_time_over_fastest", "x", "lower", model=layers_mini_time_over_fastest, x=OfLayers),
    Metric("capped_over_fastest", "x", "higher", model=capped_over_fastest, x=OfNetwork),
    Metric("least_memory_over_smallest", "x", "lower", model=least_memory_over_smallest, x=OfNetwork),
]
