"""Sizes of networks: arithmetic on the layer tables, no launches."""

from __future__ import annotations

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Published, Workload, network_of

MIB = 1 << 20
FLOAT = 4
"""Bytes of a float32."""


class OfNetwork(Arguments):
    """Which network."""

    workload: Workload = Field(description="The network.")


def model_size(x: OfNetwork, rows: Published) -> float:
    """Size of the network's parameters in float32, in MiB.

    model_size = parameters of the layer-exact network * 4 bytes / 2^20

    Arithmetic on the layer tables in harness/scaleproof/workloads, no launches. Inception-v3 has its auxiliary head, 10
    classes, and of each batch normalisation only the offset. LSTM and GRU have one bias per gate.
    """
    return network_of(x.workload).parameters * FLOAT / MIB


def tensor_count(x: OfNetwork, rows: Published) -> float:
    """Number of tensors that hold the network's parameters.

    tensor_count = number of tensors that hold the parameters of the layer-exact network

    Arithmetic on the layer tables in harness/scaleproof/workloads, no launches. Moments of batch normalisation are not
    parameters.
    """
    return len(network_of(x.workload).parameter_shapes)
