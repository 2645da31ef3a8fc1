"""What follows of rates for other machines: a switch, two channels, several servers, and trainings on allocations."""

from __future__ import annotations

from itertools import product
from typing import Annotated

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Ends, Published, Share, Workload, network_of
from scaleproof.claims.metrics import Metric
from scaleproof.packed_trees.allocation_rates import MBIT_OF_GB, allocations_of, ring_rate, tree_rate
from scaleproof.packed_trees.link_graph import LinkGraph, machine
from scaleproof.packed_trees.rings import most_rings
from scaleproof.packed_trees.times import (
    both_channels,
    double_tree_all_reduce,
    flat_ring,
    one_hop_all_reduce,
    slow_share,
    three_phases,
)

ITEM = 4
SIZES = [float(1 << power) for power in range(10, 31)]
"""1 KB to 1 GB."""


class Switch(Arguments):
    """Devices behind one switch."""

    devices: Count = Field(description="How many.")
    device_gb_per_s: Amount = Field(description="Rate of a device's links together, in one direction.")
    hop_us: Amount = Field(description="Latency of a hop.")


class Channels(Arguments):
    """NVLinks with PCI Express beside them."""

    nvlink_gb_per_s: Amount = Field(description="What trees over NVLinks carry.")
    pcie_gb_per_s: Amount = Field(description="What trees over PCI Express carry.")
    megabytes: Amount = Field(description="Size of the array.")
    switch_ms: float = Field(0.0, ge=0, description="What switching to PCI Express takes.")
    share: Share | None = Field(
        None, description="Of the array that goes over PCI Express; null: such that both end together."
    )


Devices = Annotated[tuple[int, ...], Field(min_length=2, strict=False)]


class Servers(Arguments):
    """Allocations on several servers of a kind."""

    allocations: tuple[Devices, ...] = Field(min_length=2, strict=False, description="Devices of each server.")
    network_gbit: Amount = Field(description="Of a server.")
    pcie_gb_per_s: tuple[Amount, ...] = Field(
        min_length=1, strict=False, description="What a ring over PCI Express carries: the ends of what is known."
    )


class Training(Arguments):
    """Training on any allocation of a DGX-1 with V100. What is not known is given by its ends."""

    workloads: tuple[Workload, ...] = Field(min_length=1, strict=False, description="Networks.")
    batch: tuple[Count, ...] = Field(min_length=1, strict=False, description="Samples of a device in a step: the ends.")
    tflops: tuple[Amount, ...] = Field(
        min_length=1, strict=False, description="What a GPU reaches in training, TFLOP/s: the ends."
    )
    pcie_gb_per_s: tuple[Amount, ...] = Field(
        min_length=1, strict=False, description="What a ring over PCI Express carries: the ends."
    )
    hidden: tuple[Share, ...] = Field(
        min_length=1, strict=False, description="Share of the backward pass that can hide messages: the ends."
    )


def switch_latency_gain(x: Switch, rows: Published) -> float:
    """How much faster one-hop trees are than two binary trees behind a switch, the most over sizes from 1 KB to 1 GB
    (suite blink2020).

    Each device is the root of a tree of one hop for its part. Arithmetic, no launches.
    """
    return max(
        double_tree_all_reduce(nbytes, x.devices, 1e9 * x.device_gb_per_s, 1e-6 * x.hop_us) / _one_hop(x, nbytes)
        for nbytes in SIZES
    )


def switch_ring_gain(x: Switch, rows: Published) -> float:
    """The same over a ring through all devices. Arithmetic, no launches (suite blink2020)."""
    hops = 2 * (x.devices - 1) * 1e-6 * x.hop_us
    return max((hops + flat_ring(nbytes, x.devices, 1e9 * x.device_gb_per_s)) / _one_hop(x, nbytes) for nbytes in SIZES)


def _one_hop(x: Switch, nbytes: float) -> float:
    return one_hop_all_reduce(nbytes, x.devices, 1e9 * x.device_gb_per_s, 1e-6 * x.hop_us)


def channels_gain(x: Channels, rows: Published) -> float:
    """Time over NVLinks alone / time over NVLinks and PCI Express beside each other (suite blink2020). Arithmetic, no
    launches."""
    nbytes, slow, fast = 1e6 * x.megabytes, 1e9 * x.pcie_gb_per_s, 1e9 * x.nvlink_gb_per_s
    switch_s = 1e-3 * x.switch_ms
    slow_nbytes = slow_share(nbytes, slow, fast, switch_s) if x.share is None else x.share * nbytes
    return both_channels(nbytes, 0.0, slow, fast) / both_channels(nbytes, slow_nbytes, slow, fast, switch_s)


def servers_gain(x: Servers, rows: Published) -> float:
    """servers_gain = time of one ring through all devices of all servers / time of three phases (suite blink2020)

    Three phases: reduced in each server over its trees, exchanged between servers, broadcast in each server. The ring
    goes at the rate of the network, or of PCI Express where a server's links make no ring. Of several rates of PCI
    Express the one with the least gain counts. Large arrays: nothing but rates counts. Arithmetic, no launches.
    """
    graphs = [machine("dgx1v_like").of(devices) for devices in x.allocations]
    network = x.network_gbit / 8 * 1e9
    local = [_bytes_per_s(tree_rate(graph, "all_reduce"), graph) for graph in graphs]
    devices, has_rings = sum(len(graph.devices) for graph in graphs), all(map(most_rings, graphs))
    slowest = [network if has_rings else min(network, 1e9 * rate) for rate in x.pcie_gb_per_s]
    return min(flat_ring(1.0, devices, rate) for rate in slowest) / three_phases(1.0, local, network)


def step_time_saved(x: Training, rows: Published) -> Ends:
    """step_time_saved = 100 x (1 - step with trees / step with rings), in %, the most over networks and allocations:
    its least and its largest value over what is not known (suite blink2020)

    step = compute + max(0, gradients / rate of the all-reduce - hidden share x backward pass)

    Compute takes the network's FLOP over the rate of a GPU, and the backward pass its part of them. Every combination
    of the given ends is computed. Batches, rates of GPUs and rates of PCI Express between two ends give values between
    theirs; shares of the backward pass between two ends may save more. Arithmetic, no launches.
    """
    unknown = product(x.batch, x.tflops, x.pcie_gb_per_s, x.hidden)
    found = [
        max(_saved(name, graph, *known) for name in x.workloads for graph in allocations_of("dgx1v_like"))
        for known in unknown
    ]
    return Ends(min(found), max(found))


def _saved(workload: str, graph: LinkGraph, batch: int, tflops: float, pcie_gb_per_s: float, hidden: float) -> float:
    """Of one network on one allocation, in %."""
    network = network_of(workload)
    compute = network.train_flop * batch / (1e12 * tflops)
    hides = hidden * compute * (1 - network.forward_flop / network.train_flop)
    rates = tree_rate(graph, "all_reduce"), ring_rate(graph, "all_reduce", pcie_gb_per_s)
    messages = (ITEM * network.parameters / _bytes_per_s(rate, graph) for rate in rates)
    trees, rings = (compute + max(0.0, each - hides) for each in messages)
    return 100 * (1 - trees / rings)


def _bytes_per_s(links: float, graph: LinkGraph) -> float:
    return links * graph.unit_mbit / MBIT_OF_GB * 1e9


METRICS = [
    Metric("switch_latency_gain", "x", "higher", model=switch_latency_gain, x=Switch),
    Metric("switch_ring_gain", "x", "higher", model=switch_ring_gain, x=Switch),
    Metric("channels_gain", "x", "higher", model=channels_gain, x=Channels),
    Metric("servers_gain", "x", "higher", model=servers_gain, x=Servers),
    Metric("step_time_saved", "%", "higher", model=step_time_saved, x=Training, range=(-900.0, 100.0)),
]
