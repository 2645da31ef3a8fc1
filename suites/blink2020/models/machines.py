"""What follows of rates for other machines: a switch, two channels, several servers, and trainings on allocations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Published, Share, Workload, network_of
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
from scaleproof.spec.gpu_node import rank_type

ITEM = 4
SIZES = [float(1 << power) for power in range(10, 31)]
"""1 KB to 1 GB."""
GPU = "v100hcm"
"""Of which a V100's peak rate is taken."""


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
    """Training on any allocation of a DGX-1 with V100."""

    workloads: tuple[Workload, ...] = Field(min_length=1, strict=False, description="Networks.")
    batch: Count = Field(description="Samples of a device in a step.")
    efficiency: Share = Field(description="Share of a V100's peak rate that the training reaches.")
    pcie_gb_per_s: Amount = Field(description="What a ring over PCI Express carries.")


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


def training_time_saved(x: Training, rows: Published) -> float:
    """training_time_saved = 100 x (1 - step with trees / step with rings), in %, the most over networks and allocations
    (suite blink2020)

    A step computes, and then adds up all gradients: nothing hides messages. Compute takes the network's FLOP over a
    share of the peak rate. Arithmetic, no launches.
    """
    saved = []
    for workload in x.workloads:
        network = network_of(workload)
        compute = network.train_flop * x.batch / (x.efficiency * rank_type(GPU).peak_flops)
        nbytes = ITEM * network.parameters
        for graph in allocations_of("dgx1v_like"):
            rates = tree_rate(graph, "all_reduce"), ring_rate(graph, "all_reduce", x.pcie_gb_per_s)
            trees, rings = (compute + nbytes / _bytes_per_s(rate, graph) for rate in rates)
            saved.append(100 * (1 - trees / rings))
    return max(saved)


def _bytes_per_s(links: float, graph: LinkGraph) -> float:
    return links * graph.unit_mbit / MBIT_OF_GB * 1e9


METRICS = [
    Metric("switch_latency_gain", "x", "higher", model=switch_latency_gain, x=Switch),
    Metric("switch_ring_gain", "x", "higher", model=switch_ring_gain, x=Switch),
    Metric("channels_gain", "x", "higher", model=channels_gain, x=Channels),
    Metric("servers_gain", "x", "higher", model=servers_gain, x=Servers),
    Metric("training_time_saved", "%", "higher", model=training_time_saved, x=Training, range=(-900.0, 100.0)),
]
