"""What trees gain over rings by the size of the array, where a hop takes time too."""

from __future__ import annotations

from functools import partial

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Published
from scaleproof.claims.metrics import Metric
from scaleproof.packed_trees.allocation_rates import MBIT_OF_GB, packing_of
from scaleproof.packed_trees.link_graph import LinkGraph, machine
from scaleproof.packed_trees.rings import most_rings
from scaleproof.packed_trees.times import Branch, best_chunk, over_trees, ring_all_reduce, ring_broadcast
from scaleproof.packed_trees.tree_plan import tree_plans
from scaleproof.spec.errors import SpecError

from .machines import ITEM, Devices
from .packings import Packed


class Sized(Packed):
    """A collective of one size on one allocation."""

    devices: Devices = Field(description="Of the machine.")
    kilobytes: Amount = Field(description="Size of the array, 1,024 bytes each.")
    hop_us: Amount = Field(description="Latency of a chunk on a link.")


def gain_at_size(x: Sized, rows: Published) -> float:
    """How many times as fast a collective over few trees is as one over edge-disjoint rings, by the size of the array
    (suite blink2020).

    gain_at_size = time over rings / time over trees

    Over a tree: (links + chunks - 1) (latency + chunk / rate), where an all-reduce goes up and down, and each tree has
    a share of the array in proportion to its rate; a broadcast over a ring likewise, in both directions. An all-reduce
    over rings: 2 (n - 1) rounds of latency and an n-th of the ring's share. Chunks of the fastest size. Arithmetic, no
    launches.
    """
    graph, nbytes = machine(x.machine).of(x.devices), 1024 * x.kilobytes
    unit, latency, rings = graph.unit_mbit / MBIT_OF_GB * 1e9, 1e-6 * x.hop_us, len(most_rings(graph))
    if not rings:
        raise SpecError(f"x.devices: the links of {list(x.devices)} make no ring")
    reduces, count = x.collective == "all_reduce", len(x.devices)
    trees = partial(over_trees, nbytes, _branches(x, graph, unit), latency, reduces=reduces)
    best = trees(best_chunk(trees))
    if reduces:
        return ring_all_reduce(nbytes, count, rings, unit, latency) / best
    ring = partial(ring_broadcast, nbytes, count, rings, unit, latency)
    return ring(best_chunk(ring)) / best


def _branches(x: Sized, graph: LinkGraph, unit: float) -> list[Branch]:
    packing, elements = packing_of(graph, x.collective), int(1024 * x.kilobytes / ITEM)
    return [
        Branch(plan.depth, packing.rate * (plan.stop - plan.start) / elements * unit)
        for plan in tree_plans(packing, elements)
    ]


METRICS = [Metric("gain_at_size", "x", "higher", model=gain_at_size, x=Sized)]
