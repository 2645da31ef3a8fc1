"""The time of one of NCCL's collectives: for each algorithm and protocol its latency and its bandwidth on the node's
links, of which NCCL takes the pair that its cost model finds fastest (src/graph/tuning.cc: latency + bytes /
bandwidth)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from scaleproof.simulate.nccl.constants import (
    BASE_US,
    CHANNEL_GB_PER_S,
    HOP_US,
    LL128_CHANNEL,
    LL128_SHARE,
    LL_MOST,
    LL_SHARE,
    NETWORK_GB_PER_GBIT,
    NVLINK_GB_PER_S,
    NVLS_SHARE,
    PLATEAU_NBYTES,
    POST_US,
    PROTOCOLS,
    RING_PLATEAU,
    TREE_CHANNEL,
    TREE_CORRECTION,
    TREE_LL128_SHARE,
    TREE_LL_SHARE,
    TREE_SHARE,
    Algorithm,
    Hop,
    Protocol,
)
from scaleproof.simulate.nccl.rings import disjoint_rings
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import Architecture, GpuNode

Collective = Literal["allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "sendrecv"]
GIGA, MICRO = 1e9, 1e-6


@dataclass(frozen=True, slots=True)
class Channels:
    """What a ring has: channels and GB/s of each, all of them together no more than the slowest part of the way."""

    count: int
    each: float

    @property
    def total(self) -> float:
        """GB/s of all channels."""
        return self.count * self.each


@dataclass(frozen=True, slots=True)
class Way:
    """An algorithm with a protocol: latency in us, and the array's bytes per time in GB/s (algbw)."""

    algorithm: Algorithm
    protocol: Protocol
    latency_us: float
    algbw: float
    nbytes: int

    @property
    def seconds(self) -> float:
        """Time of the call."""
        return self.latency_us * MICRO + self.nbytes / (self.algbw * GIGA)

    def busbw(self, collective: Collective, gpus: int) -> float:
        """Bus bandwidth in GB/s, as nccl-tests states it (doc/PERFORMANCE.md)."""
        return self.nbytes / self.seconds / GIGA * bus_factor(collective, gpus)


def bus_factor(collective: Collective, gpus: int) -> float:
    """busbw over algbw."""
    if collective == "allreduce":
        return 2 * (gpus - 1) / gpus
    return (gpus - 1) / gpus if collective in ("allgather", "reducescatter", "alltoall") else 1.0


def predict(node: GpuNode, collective: Collective, nodes: int, nbytes: int, algorithm: Algorithm | None = None) -> Way:
    """One call over all GPUs of `nodes` equal nodes; `nbytes`: of the whole array, as nccl-tests counts it.
    `algorithm`: as NCCL_ALGO sets it. Raises SpecError for what the nodes cannot do."""
    ways = [way for way in ways_of(node, collective, nodes, nbytes) if algorithm in (None, way.algorithm)]
    if not ways:
        raise SpecError(f"{collective} over {nodes} nodes has no algorithm {algorithm!r} here")
    return min(ways, key=lambda way: way.seconds)


def ways_of(node: GpuNode, collective: Collective, nodes: int, nbytes: int) -> Iterator[Way]:
    """Every algorithm and protocol that NCCL considers."""
    if collective not in get_args(Collective):
        raise SpecError(f"unknown collective {collective!r}; known: {', '.join(get_args(Collective))}")
    if nodes > 1 and node.network_gbit is None:
        raise SpecError(f"{node.summary}: several nodes need network_gbit")
    case = _Case(node, collective, nodes, nbytes)
    yield from case.rings()
    if collective == "allreduce":
        yield from case.trees()
        yield from case.in_switch()


def architecture_of(node: GpuNode) -> Architecture:
    """By which NCCL's constants are taken. Raises SpecError for GPUs that they leave out."""
    if node.architecture is None:
        raise SpecError(f"{node.summary}: no architecture and links inside, which the model of NCCL needs")
    return node.architecture


def channels_of(node: GpuNode) -> Channels:
    """Of rings inside a node."""
    architecture = architecture_of(node)
    if not node.nvlinks:
        return Channels(1, float(node.pcie_gb_per_s or 0.0))
    link = NVLINK_GB_PER_S[architecture]
    if node.links is not None:
        return Channels(2 * len(disjoint_rings(node.pairs(), node.gpus)), link)
    total = node.nvlinks * link
    tried = [Channels(int(total // rate), rate) for rate in CHANNEL_GB_PER_S[architecture] if rate <= total]
    return max(tried, key=lambda channels: (channels.total, -channels.each))


class _Case:
    def __init__(self, node: GpuNode, collective: Collective, nodes: int, nbytes: int) -> None:
        self.node, self.collective, self.nodes, self.nbytes = node, collective, nodes, nbytes
        self.ranks = node.gpus * nodes
        self.architecture = architecture_of(node)
        self.channels = channels_of(node)
        self.network = math.inf if nodes == 1 else float(node.network_gbit or 0.0) * NETWORK_GB_PER_GBIT
        self.inside: Hop = "nvlink" if node.nvlinks else "pcie"
        self.bucket = min(nodes, 3) - 1
        """Column of tables by number of nodes: one, two, more."""

    def rings(self) -> Iterator[Way]:
        """A ring enters and leaves every node once; each GPU sends n - 1 of n parts, or twice that."""
        total, count = min(self.channels.total, self.network), self.channels.count
        rates = (
            min(LL_MOST[self.architecture][self.bucket], LL_SHARE * total),
            min(LL128_SHARE * total, count * LL128_CHANNEL[self.architecture]),
            total,
        )
        for number, protocol in enumerate(PROTOCOLS):
            if protocol == "LL128" and not self.node.nvlinks:
                continue
            yield Way(
                "ring",
                protocol,
                self._ring_us(number),
                rates[number] / bus_factor(self.collective, self.ranks),
                self.nbytes,
            )

    def _ring_us(self, protocol: int) -> float:
        base, inside = BASE_US["ring"][protocol], HOP_US[self.inside]["ring"][protocol]
        network = HOP_US["network"]["ring"][protocol]
        if self.collective == "broadcast":
            return base + (network if self.nodes > 1 else inside)
        if self.collective in ("alltoall", "sendrecv"):  # every GPU sends directly
            return base + (network if self.nodes > 1 else inside)
        twice = 2 if self.collective == "allreduce" else 1
        steps, between = twice * (self.ranks - 1), twice * (self.nodes - 1)
        if self.nodes > 1:
            inside = max(inside, POST_US * (3 if PROTOCOLS[protocol] == "Simple" else 1))
        latency = base + (steps - between) * inside + between * network
        plateau = self.nbytes / (self.channels.count * self.ranks) >= PLATEAU_NBYTES
        if PROTOCOLS[protocol] == "Simple" and self.nodes > 1 and self.collective == "allreduce" and plateau:
            latency *= RING_PLATEAU[self.architecture]
        return latency

    def trees(self) -> Iterator[Way]:
        """Two trees over nodes, each for half of the array, and a chain through the GPUs of each node."""
        architecture, count = self.architecture, self.channels.count
        inside = min(TREE_SHARE * self.channels.total, count * TREE_CHANNEL[architecture][self.bucket]) / 2
        shares = (TREE_LL_SHARE, TREE_LL128_SHARE[self.nodes == 1], 1.0)
        for number, protocol in enumerate(PROTOCOLS):
            if protocol == "LL128" and not self.node.nvlinks:
                continue
            hop, network = HOP_US[self.inside]["tree"][number], HOP_US["network"]["tree"][number]
            latency = BASE_US["tree"][number] + 2 * ((self.node.gpus - 1) * hop + math.log2(self.nodes) * network)
            algbw = min(inside, self._tree_network) * shares[number]
            if protocol == "Simple":
                algbw *= TREE_CORRECTION[
                    min(max(int(math.log2(max(self.nbytes >> 6, 1))), 0), len(TREE_CORRECTION) - 1)
                ]
            yield Way("tree", protocol, latency, algbw, self.nbytes)

    def in_switch(self) -> Iterator[Way]:
        """Reductions in the switch: every GPU's links carry the array once in each direction. Over several nodes each
        GPU's share goes through a tree between the nodes."""
        share = NVLS_SHARE[self.architecture]
        if not share or not self.node.nvlinks or self.node.links is not None:
            return
        count = self.channels.count
        links = self.node.nvlinks * NVLINK_GB_PER_S[self.architecture]
        algbw = min(links * share * (count - 1) / count, self._tree_network)
        name: Algorithm = "nvls" if self.nodes == 1 else "nvls_tree"
        latency = BASE_US[name][2] + HOP_US["nvlink"][name][2]
        if self.nodes > 1:
            latency += 2 * math.log2(self.nodes) * HOP_US["network"][name][2]
        yield Way(name, "Simple", latency, algbw, self.nbytes)

    @property
    def _tree_network(self) -> float:
        """The array's bytes per time in GB/s over two trees between nodes. Between two nodes each sends the halves
        once: up in one tree, down in the other. Among more, an inner node of a tree sends a half up and two down, and
        is a leaf of the other tree, which sends a half up: two arrays in all."""
        return self.network if self.nodes <= 2 else self.network / 2
