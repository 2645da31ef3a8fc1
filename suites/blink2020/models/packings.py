"""Allocations of a machine, packings on them, and what trees gain over rings."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import exp, log
from typing import Literal

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Ends, Published
from scaleproof.claims.metrics import Metric
from scaleproof.packed_trees.bounds import all_reduce_bound, best_root
from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import LinkGraph, allocations, machine
from scaleproof.packed_trees.multiplicative_weights import Packing, packed
from scaleproof.packed_trees.rings import all_reduce_rate, broadcast_rate, most_rings

MBIT_OF_GB = 8000.0
"""Mbit/s of a GB/s."""
Collective = Literal["broadcast", "all_reduce"]
Name = Literal["dgx1v_like", "dgx1p_like"]


class Machine(Arguments):
    """A machine."""

    machine: Name = Field(description="A description of clusters/ with direct links.")


class Weights(Machine):
    """The fractional packing for a broadcast on the whole machine."""

    epsilon: float = Field(ge=0.01, le=0.5, description="Of multiplicative weights.")


class Packed(Machine):
    """All allocations of a machine."""

    collective: Collective = Field(description="What is sent over the trees.")


class Gained(Packed):
    """The same beside rings, and beside PCI Express where links make no ring."""

    pcie_gb_per_s: Amount = Field(description="What a ring over PCI Express carries.")


class GainedOver(Arguments):
    """The same where the machine or the rate of PCI Express is not known."""

    machines: tuple[Name, ...] = Field(min_length=1, strict=False, description="Those that it may have been.")
    collective: Collective = Field(description="What is sent over the trees.")
    pcie_gb_per_s: tuple[Amount, ...] = Field(
        min_length=1, strict=False, description="What a ring over PCI Express carries: the ends of what is known."
    )


def allocation_kinds(x: Machine, rows: Published) -> float:
    """Connected allocations of three devices or more that differ in more than the numbers of their devices. Arithmetic,
    no launches (suite blink2020)."""
    return float(len(allocations_of(x.machine)))


def allocations_without_ring(x: Machine, rows: Published) -> float:
    """Those of them whose links make no ring through all devices. Arithmetic, no launches (suite blink2020)."""
    return float(sum(not _rings(graph) for graph in allocations_of(x.machine)))


def trees_of_weights(x: Weights, rows: Published) -> float:
    """Trees of the fractional packing for a broadcast on the whole machine. Arithmetic, no launches (suite
    blink2020)."""
    graph = machine(x.machine)
    return float(len(packed(graph, best_root(graph)[0], x.epsilon).trees))


def trees_of_program(x: Machine, rows: Published) -> float:
    """Trees that the integer program leaves of them. Arithmetic, no launches (suite blink2020)."""
    graph = machine(x.machine)
    return float(len(few_trees(graph, best_root(graph)[0]).trees))


def least_of_bound(x: Packed, rows: Published) -> float:
    """Least share of the bound that few trees carry, over all allocations. Arithmetic, no launches (suite
    blink2020)."""
    return min(tree_rate(graph, x.collective) / _bound(graph, x.collective) for graph in allocations_of(x.machine))


def most_trees(x: Packed, rows: Published) -> float:
    """Most trees of a packing of few trees, over all allocations. Arithmetic, no launches (suite blink2020)."""
    return float(max(len(packing_of(graph, x.collective).trees) for graph in allocations_of(x.machine)))


def gain_mean(x: Gained, rows: Published) -> float:
    """Geometric mean over all allocations of the rate of trees over that of rings (suite blink2020).

    Where links make no ring, one goes over PCI Express at its rate. Rates of large arrays: a link carries its rate, and
    nothing else takes time. Arithmetic, no launches.
    """
    gains = _gains(x)
    return exp(sum(map(log, gains)) / len(gains))


def gain_largest(x: Gained, rows: Published) -> float:
    """The largest of these. See [gain_mean](gain_mean.md). Arithmetic, no launches."""
    return max(_gains(x))


def gain_up_to(x: GainedOver, rows: Published) -> Ends:
    """The least and the largest of these over machines and rates of PCI Express, of which one is the true one (suite
    blink2020). See [gain_largest](gain_largest.md). Arithmetic, no launches."""
    found = [
        max(_gains(Gained(machine=name, collective=x.collective, pcie_gb_per_s=rate)))
        for name, rate in product(x.machines, x.pcie_gb_per_s)
    ]
    return Ends(min(found), max(found))


def _gains(x: Gained) -> list[float]:
    return [
        tree_rate(graph, x.collective) / ring_rate(graph, x.collective, x.pcie_gb_per_s)
        for graph in allocations_of(x.machine)
    ]


@lru_cache
def allocations_of(name: str) -> tuple[LinkGraph, ...]:
    return tuple(allocations(machine(name)))


@lru_cache(maxsize=256)
def _found(name: str, devices: tuple[int, ...], root: int | None) -> Packing:
    return few_trees(machine(name).of(devices), root)


@lru_cache(maxsize=256)
def _best_root(name: str, devices: tuple[int, ...]) -> tuple[int, float]:
    return best_root(machine(name).of(devices))


def tree_rate(graph: LinkGraph, collective: Collective) -> float:
    """Of few trees, in links."""
    return packing_of(graph, collective).rate


def packing_of(graph: LinkGraph, collective: Collective) -> Packing:
    """Few trees; of a broadcast from the root with the largest rate."""
    of = _of(graph)
    return _found(*of, _best_root(*of)[0] if collective == "broadcast" else None)


def _of(graph: LinkGraph) -> tuple[str, tuple[int, ...]]:
    return graph.name.split(" ")[0], graph.devices


def _bound(graph: LinkGraph, collective: Collective) -> float:
    return _best_root(*_of(graph))[1] if collective == "broadcast" else all_reduce_bound(graph)


def _rings(graph: LinkGraph) -> int:
    return len(most_rings(graph))


def ring_rate(graph: LinkGraph, collective: Collective, pcie_gb_per_s: float) -> float:
    """Of rings without a common link, in links; over PCI Express where links make none."""
    count, devices = _rings(graph), len(graph.devices)
    slow = pcie_gb_per_s * MBIT_OF_GB / graph.unit_mbit
    if collective == "broadcast":
        return broadcast_rate(count) or slow
    return all_reduce_rate(count, devices) or slow * devices / (2 * (devices - 1))


METRICS = [
    Metric("allocation_kinds", "allocations", None, model=allocation_kinds, x=Machine),
    Metric("allocations_without_ring", "allocations", None, model=allocations_without_ring, x=Machine),
    Metric("trees_of_weights", "trees", "lower", model=trees_of_weights, x=Weights),
    Metric("trees_of_program", "trees", "lower", model=trees_of_program, x=Machine),
    Metric("least_of_bound", "fraction", "higher", model=least_of_bound, x=Packed),
    Metric("most_trees", "trees", "lower", model=most_trees, x=Packed),
    Metric("gain_mean", "x", "higher", model=gain_mean, x=Gained),
    Metric("gain_largest", "x", "higher", model=gain_largest, x=Gained),
    Metric("gain_up_to", "x", "higher", model=gain_up_to, x=GainedOver),
]
