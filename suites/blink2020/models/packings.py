"""Allocations of a machine, packings on them, and what trees gain over rings."""

from __future__ import annotations

from itertools import product
from math import exp, log
from typing import Literal

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Ends, Published
from scaleproof.claims.metrics import Metric
from scaleproof.packed_trees.allocation_rates import (
    Collective,
    allocations_of,
    bound_of,
    gains,
    packing_of,
    ring_count,
    tree_rate,
)
from scaleproof.packed_trees.bounds import best_root
from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import machine
from scaleproof.packed_trees.multiplicative_weights import packed

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
    return float(sum(not ring_count(graph) for graph in allocations_of(x.machine)))


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
    return min(tree_rate(graph, x.collective) / bound_of(graph, x.collective) for graph in allocations_of(x.machine))


def most_trees(x: Packed, rows: Published) -> float:
    """Most trees of a packing of few trees, over all allocations. Arithmetic, no launches (suite blink2020)."""
    return float(max(len(packing_of(graph, x.collective).trees) for graph in allocations_of(x.machine)))


def gain_mean(x: Gained, rows: Published) -> float:
    """Geometric mean over all allocations of the rate of trees over that of rings (suite blink2020).

    Where links make no ring, one goes over PCI Express at its rate. Rates of large arrays: a link carries its rate, and
    nothing else takes time. Arithmetic, no launches.
    """
    found = _gains(x)
    return exp(sum(map(log, found)) / len(found))


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
    return [each.least for each in gains(x.machine, x.collective, (x.pcie_gb_per_s,))]


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
