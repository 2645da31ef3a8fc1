"""What packed trees carry on each allocation of a machine, beside rings, or beside PCI Express where links make none.

Rates are in units of a link's rate, where a link carries its rate and nothing else takes time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from scaleproof.packed_trees.bounds import all_reduce_bound, best_root
from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import LinkGraph, allocations, machine
from scaleproof.packed_trees.multiplicative_weights import Packing
from scaleproof.packed_trees.rings import all_reduce_rate, broadcast_rate, most_rings

MBIT_OF_GB = 8000.0
"""Mbit/s of a GB/s."""
Collective = Literal["broadcast", "all_reduce"]


@dataclass(frozen=True, slots=True)
class Gain:
    """One allocation. `trees`, `rings`: rates, of rings 0 where links make none; `least`, `most`: the rate of trees
    over that of what NCCL would take, which differ where it takes PCI Express, whose rate is a range."""

    devices: tuple[int, ...]
    trees: float
    rings: float
    least: float
    most: float

    @property
    def has_ring(self) -> bool:
        """Whether links make a ring through all devices."""
        return self.rings > 0


@lru_cache
def allocations_of(name: str) -> tuple[LinkGraph, ...]:
    """All kinds of allocations of a machine, those with fewer devices first. SpecError where it has no links."""
    return tuple(allocations(machine(name)))


def gains(name: str, collective: Collective, pcie_gb_per_s: tuple[float, ...]) -> list[Gain]:
    """Of all allocations of a machine. `pcie_gb_per_s`: rates that a ring over PCI Express may have, GB/s."""
    return [_gain(graph, collective, pcie_gb_per_s) for graph in allocations_of(name)]


def _gain(graph: LinkGraph, collective: Collective, pcie_gb_per_s: tuple[float, ...]) -> Gain:
    trees = tree_rate(graph, collective)
    over = [trees / ring_rate(graph, collective, rate) for rate in pcie_gb_per_s]
    return Gain(graph.devices, trees, _over_links(graph, collective), min(over), max(over))


@lru_cache(maxsize=256)
def packing_of(graph: LinkGraph, collective: Collective) -> Packing:
    """Few trees; of a broadcast from the root with the largest rate."""
    return few_trees(graph, _best_root(graph)[0] if collective == "broadcast" else None)


def tree_rate(graph: LinkGraph, collective: Collective) -> float:
    """Of few trees."""
    return packing_of(graph, collective).rate


def bound_of(graph: LinkGraph, collective: Collective) -> float:
    """The most that trees can carry."""
    return _best_root(graph)[1] if collective == "broadcast" else all_reduce_bound(graph)


@lru_cache(maxsize=256)
def ring_count(graph: LinkGraph) -> int:
    """Rings through all devices that share no link; two devices have none."""
    return len(most_rings(graph)) if len(graph.devices) > 2 else 0


def ring_rate(graph: LinkGraph, collective: Collective, pcie_gb_per_s: float) -> float:
    """Of these rings; of one over PCI Express where links make none."""
    slow, devices = pcie_gb_per_s * MBIT_OF_GB / graph.unit_mbit, len(graph.devices)
    one_way = slow if collective == "broadcast" else slow * devices / (2 * (devices - 1))
    return _over_links(graph, collective) or one_way


def _over_links(graph: LinkGraph, collective: Collective) -> float:
    count = ring_count(graph)
    return broadcast_rate(count) if collective == "broadcast" else all_reduce_rate(count, len(graph.devices))


@lru_cache(maxsize=256)
def _best_root(graph: LinkGraph) -> tuple[int, float]:
    return best_root(graph)
