"""Frontiers of networks on more and more devices, and of graphs that are small enough to list every strategy."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published, Workload, network_of
from scaleproof.claims.metrics import Metric
from scaleproof.frontiers.cost_graph import CostGraph, Costs, frontier_of
from scaleproof.frontiers.one_objective import fastest, smallest
from scaleproof.frontiers.operators import divided
from scaleproof.frontiers.points import Frontier
from scaleproof.simulate.nccl.gpu_machine import gpu_machine

NODE = "p3dn"
"""8 V100 a node, as the paper has; its network is the one that we know of."""
ERROR = 0.02
"""Share of its memory by which a strategy that is left out of a network's frontier may be below one on it."""


class OfNetwork(Arguments):
    """A network on GPUs of nodes with 8 V100."""

    workload: Workload = Field(description="The network.")
    batch: Count = Field(description="Samples of a step, of all devices together.")
    devices: Count = Field(description="GPUs.")


class Capped(OfNetwork):
    """The same with a cap."""

    memory_gb: float = Field(gt=0, description="Most memory of a device, GB.")


class RandomGraphs(Arguments):
    """Graphs that are drawn, small enough to list every strategy."""

    graphs: Count = Field(description="How many.")
    operators: int = Field(ge=2, le=8, description="Most operators of a graph.")
    configurations: int = Field(ge=1, le=4, description="Most configurations of an operator.")


@lru_cache(maxsize=32)
def _frontier(workload: str, batch: int, devices: int) -> Frontier:
    made = divided(network_of(workload), batch, gpu_machine(NODE, devices), states=4)
    return frontier_of(made.graph, error=ERROR)


def least_memory(x: OfNetwork, rows: Published) -> float:
    """The least memory of a device that any strategy needs, in GB (suite tensoropt2022). Arithmetic, no launches."""
    return float(_frontier(x.workload, x.batch, x.devices).memory[0]) / 1e9


def least_time(x: OfNetwork, rows: Published) -> float:
    """The least time of a step of any strategy, in s (suite tensoropt2022). Arithmetic, no launches."""
    return float(_frontier(x.workload, x.batch, x.devices).time[-1])


def time_in_memory(x: Capped, rows: Published) -> float:
    """The time of a step of the fastest strategy that fits, in s; infinite where none does (suite tensoropt2022).
    Arithmetic, no launches."""
    found = _frontier(x.workload, x.batch, x.devices)
    fitting = int(np.searchsorted(found.memory, x.memory_gb * 1e9, side="right"))
    return float(found.time[fitting - 1]) if fitting else math.inf


def gain_over_half(x: Capped, rows: Published) -> float:
    """How many times as fast the fastest strategy that fits is as that on half as many devices with as much memory each
    (suite tensoropt2022).

    gain_over_half = time_in_memory on devices / 2 / time_in_memory

    Arithmetic, no launches.
    """
    return time_in_memory(x.model_copy(update={"devices": x.devices // 2}), rows) / time_in_memory(x, rows)


def most_points(x: RandomGraphs, rows: Published) -> float:
    """The most points that a frontier of these graphs has (suite tensoropt2022). Arithmetic, no launches."""
    graphs = (_random_graph(seed, x.operators, x.configurations) for seed in range(x.graphs))
    return float(max(len(frontier_of(graph).memory) for graph in graphs))


def points_without_messages(x: OfNetwork, rows: Published) -> float:
    """Points of the frontier where messages take no time (suite tensoropt2022). Arithmetic, no launches."""
    free = {"latency": 0.0, "byte_s": 0.0, "latency_between": 0.0, "byte_s_between": 0.0}
    machine = replace(gpu_machine(NODE, x.devices), **free)
    return float(len(frontier_of(divided(network_of(x.workload), x.batch, machine, states=4).graph, error=ERROR)))


def ahead_of_half(x: OfNetwork, rows: Published) -> float:
    """Share of the frontier of half as many devices that is behind this one (suite tensoropt2022).

    ahead_of_half = points of the frontier of devices / 2 to which a point of this frontier is better in memory and in
    time / points of the frontier of devices / 2

    1: the frontiers do not cross. Arithmetic, no launches.
    """
    half, ours = (_frontier(x.workload, x.batch, devices) for devices in (x.devices // 2, x.devices))
    fitting = np.searchsorted(ours.memory, half.memory, side="left")  # points with less memory
    quicker = [count > 0 and ours.time[count - 1] < time for count, time in zip(fitting, half.time, strict=True)]
    return float(np.mean(quicker))


def frontier_mismatches(x: RandomGraphs, rows: Published) -> float:
    """Graphs of which the frontier is another than that of listing every strategy, by either method (suite
    tensoropt2022). Arithmetic, no launches."""
    wrong = 0
    for seed in range(x.graphs):
        graph = _random_graph(seed, x.operators, x.configurations)
        listed = _listed(graph)
        for method in ("dynamic", "elimination"):
            found = frontier_of(graph, method=method)  # type: ignore[arg-type]
            wrong += list(zip(found.memory.tolist(), found.time.tolist(), strict=True)) != listed
    return float(wrong)


def ends_mismatches(x: RandomGraphs, rows: Published) -> float:
    """Graphs of which an end of the frontier is not what a search for time alone (OptCNN) or for memory alone (ToFu)
    finds (suite tensoropt2022). Arithmetic, no launches."""
    wrong = 0
    for seed in range(x.graphs):
        graph = _random_graph(seed, x.operators, x.configurations)
        found = frontier_of(graph)
        wrong += (float(found.memory[0]), float(found.time[-1])) != (smallest(graph)[0], fastest(graph)[0])
    return float(wrong)


def _random_graph(seed: int, most: int, configurations: int) -> CostGraph:
    """A chain with further edges; few levels of cost, so that there are ties."""
    random = np.random.default_rng([2022, seed])
    names = [f"op{number}" for number in range(int(random.integers(2, most + 1)))]
    counts = {name: int(random.integers(1, configurations + 1)) for name in names}

    def costs(*shape: int) -> Costs:
        return Costs(*(random.integers(0, 6, shape).astype(float) for _ in range(2)))

    pairs = [*pairwise(names), *((a, b) for a, b in product(names, names) if a < b and random.random() < 0.2)]
    edges = {(a, b): costs(counts[a], counts[b]) for a, b in dict.fromkeys(pairs)}
    return CostGraph({name: costs(counts[name]) for name in names}, edges)


def _listed(graph: CostGraph) -> list[tuple[float, float]]:
    """The frontier of every strategy, one by one."""
    names = list(graph.operators)
    every = product(*(range(len(graph.operators[name].memory)) for name in names))
    best: list[tuple[float, float]] = []
    for cost in sorted({graph.cost(dict(zip(names, way, strict=True))) for way in every}):
        if not best or cost[1] < best[-1][1]:
            best.append(cost)
    return best


METRICS = [
    Metric("least_memory", "GB", "lower", model=least_memory, x=OfNetwork),
    Metric("least_time", "s", "lower", model=least_time, x=OfNetwork),
    Metric("time_in_memory", "s", "lower", model=time_in_memory, x=Capped),
    Metric("gain_over_half", "x", "higher", model=gain_over_half, x=Capped),
    Metric("most_points", "points", None, model=most_points, x=RandomGraphs),
    Metric("points_without_messages", "points", None, model=points_without_messages, x=OfNetwork),
    Metric("ahead_of_half", "fraction", "higher", model=ahead_of_half, x=OfNetwork),
    Metric("frontier_mismatches", "graphs", "lower", model=frontier_mismatches, x=RandomGraphs),
    Metric("ends_mismatches", "graphs", "lower", model=ends_mismatches, x=RandomGraphs),
]
