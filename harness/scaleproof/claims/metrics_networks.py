"""Sizes of networks: arithmetic on the layer tables, no launches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.spec import registry
from scaleproof.workloads.networks import Network

MIB = 1 << 20
FLOAT = 4
"""Bytes of a float32."""
Rows = Mapping[str, PublishedRow]


def model_size(x: Mapping[str, Any], rows: Rows) -> float:
    """Size of the network's parameters in float32, in MiB.

    model_size = parameters of the layer-exact network * 4 bytes / 2^20

    Arithmetic on the layer tables in harness/scaleproof/workloads, no launches. Inception-v3 has its auxiliary head, 10
    classes, and of each batch normalisation only the offset. LSTM and GRU have one bias per gate.
    """
    return _network(x).parameters * FLOAT / MIB


def tensor_count(x: Mapping[str, Any], rows: Rows) -> float:
    """Number of tensors that hold the network's parameters.

    tensor_count = number of tensors that hold the parameters of the layer-exact network

    Arithmetic on the layer tables in harness/scaleproof/workloads, no launches. Moments of batch normalisation are not
    parameters.
    """
    return len(_network(x).parameter_shapes)


def _network(x: Mapping[str, Any]) -> Network:
    network: Network = registry.load("workload", x["workload"])(None, 1.0)
    return network
