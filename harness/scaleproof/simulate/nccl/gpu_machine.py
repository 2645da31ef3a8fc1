"""Devices that are GPUs of a node type: NCCL's rings inside a node, and its network cards between nodes."""

from __future__ import annotations

from scaleproof.frontiers.operators import Machine
from scaleproof.simulate.nccl.constants import HOP_US, NETWORK_GB_PER_GBIT
from scaleproof.simulate.nccl.prediction import channels_of
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_node, gpu_of, rank_type


def gpu_machine(
    name: str, devices: int, efficiency: float | None = None, network: tuple[float, float] | None = None
) -> Machine:
    """So many GPUs of a node type (clusters/gpu_nodes.yaml). `efficiency`: share of the peak rate; None: the middle of
    what is stated for the GPU. `network`: latency in s and time of a byte in s between nodes; None: of the node's own
    cards. The GPUs of a node share it. SpecError where several nodes are needed whose network is not known."""
    node = gpu_node(name)
    share = sum(gpu_of(name).efficiency) / 2 if efficiency is None else efficiency
    flops, inside = rank_type(name).peak_flops * share, 1 / (channels_of(node).total * 1e9)
    hop = HOP_US["nvlink" if node.nvlinks else "pcie"]["ring"][2] * 1e-6
    if devices <= node.gpus:
        return Machine(devices, flops, hop, inside)
    if network is None:
        if node.network_gbit is None:
            raise SpecError(f"{name} has no network_gbit, and {devices} devices are more than its {node.gpus} GPUs")
        network = HOP_US["network"]["ring"][2] * 1e-6, 1 / (node.network_gbit * NETWORK_GB_PER_GBIT * 1e9)
    latency, byte_s = network
    return Machine(devices, flops, hop, inside, node.gpus, latency, node.gpus * byte_s)
