"""What only this paper needs: its balance equations, which say how many data points a node needs to hide the exchange
of its conv layers.

Per node and step, for a layer of `weights` weights and MB points (docs/metrics/flop_per_byte.md has the derivation):
    compute = 3 * 2 * weights * out_w * out_h * MB          FLOP: forward, input gradient, weight gradient
    exchange = 4 * weights * (2 - overlap)                  bytes: send the partial gradient, receive the new weights
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.layers import Conv
from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.volumes import closed_form_groups, volume

FLOAT = 4
"""Bytes of a float32."""
PASSES = 3
"""Forward, gradient of the inputs, gradient of the weights: each costs the same."""
AVX2_FLOP_PER_CYCLE = 32
"""Two fused multiply-adds of 8 floats a cycle and core (Haswell)."""
Rows = Mapping[str, PublishedRow]


def compute_flop(layer: Layer, points: int) -> int:
    """FLOP of a training step of a layer on `points` data points."""
    return PASSES * 2 * layer.mac * points


def exchange_nbytes(layer: Layer, overlap: float) -> float:
    """Bytes that a node sends and receives for a layer; `overlap` in [0, 1] is the share of receiving that hides behind
    sending."""
    return FLOAT * layer.weights * (2 - overlap)


def conv_layers(workload: str) -> list[Layer]:
    """The convolutions of the layer-exact network."""
    network: Network = registry.load("workload", workload)(None, 1.0)
    return [layer for layer in network.layers if isinstance(layer.spec, Conv)]


def conv_flop_per_byte(workload: str, points: int, overlap: float) -> float:
    """FLOP per exchanged byte over all convolutions together."""
    layers = conv_layers(workload)
    return sum(compute_flop(layer, points) for layer in layers) / sum(
        exchange_nbytes(layer, overlap) for layer in layers
    )


def machine_balance(machine: Mapping[str, float]) -> float:
    """Peak FLOP per network byte of a node: cores, GHz, and GB/s of its link."""
    return machine["cores"] * machine["ghz"] * AVX2_FLOP_PER_CYCLE / machine["gigabytes_per_s"]


def flop_per_byte(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: `x` has workload, points and overlap."""
    return conv_flop_per_byte(x["workload"], x["points"], x["overlap"])


def machine_flop_per_byte(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: `x` has cores, ghz and gigabytes_per_s."""
    return machine_balance(x)


def min_points_per_node(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: fewest whole points per node whose compute hides the exchange; `x` has workload, overlap and machine."""
    return math.ceil(machine_balance(x["machine"]) / conv_flop_per_byte(x["workload"], 1, x["overlap"]))


def max_nodes(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: most nodes over which a minibatch can be spread with the exchange hidden; `x` as for the points, and
    minibatch."""
    return x["minibatch"] // min_points_per_node(x, rows)


def hybrid_nbytes(layer: Layer, nodes: int, minibatch: int, groups: int) -> float:
    """Bytes that a node exchanges in a step for a fully connected layer in `groups` groups, by the paper's two volumes
    (workloads/volumes.py)."""
    found = volume(_alone(layer), nodes, minibatch, groups)
    return found.comm_model + found.comm_data


def fewest(layer: Layer, nodes: int, minibatch: int) -> int:
    """The divisor of the nodes with the fewest of these bytes; of equals the smaller one."""
    return min(_divisors(nodes), key=lambda groups: (hybrid_nbytes(layer, nodes, minibatch, groups), groups))


def layer_of(x: Mapping[str, Any]) -> Layer:
    """The layer that `x` names by workload and layer."""
    network: Network = registry.load("workload", x["workload"])(None, 1.0)
    return next(layer for layer in network.layers if layer.name == x["layer"])


def _alone(layer: Layer) -> Network:
    return Network(layer.name, layer.input_shape, (replace(layer, inputs=(INPUT,)),))


def _divisors(nodes: int) -> list[int]:
    return [groups for groups in range(1, nodes + 1) if nodes % groups == 0]


def hybrid_groups(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: `x` has workload, layer, nodes and minibatch."""
    return fewest(layer_of(x), x["nodes"], x["minibatch"])


def hybrid_groups_closed(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: the same by the closed form."""
    return closed_form_groups(_alone(layer_of(x)), x["nodes"], x["minibatch"])


def closed_form_excess(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: by which share the divisor nearest to the closed form sends more than the best one."""
    layer, nodes, minibatch = layer_of(x), x["nodes"], x["minibatch"]
    wanted = closed_form_groups(_alone(layer), nodes, minibatch)
    nearest = min(_divisors(nodes), key=lambda groups: abs(math.log(groups / wanted)))
    return (
        hybrid_nbytes(layer, nodes, minibatch, nearest)
        / hybrid_nbytes(layer, nodes, minibatch, fewest(layer, nodes, minibatch))
        - 1
    )


def published_efficiency(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: the published speed-up named by `x` over its number of nodes."""
    row = rows[x["speedup"]]
    assert row.value is not None
    return row.value / float(row.x["nodes"])


def _sent(record: Record) -> list[tuple[float, float]]:
    """Per rank of strategy hybrid what its last step sent and what the formulas say, in bytes; tensors that were shrunk
    count in full."""
    found = [status.facts["hybrid"] for status in record.ranks if "sent" in status.facts.get("hybrid", {})]
    scale = record.case.shrink if record.case.fabric != "simulated" else 1.0
    return [(scale * sum(fact["sent"].values()), sum(fact["formula"].values())) for fact in found]


def hybrid_bytes_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Metric: what the busiest rank sent over what the formulas say."""
    found = _sent(record)
    sent, foretold = max(found, default=(0.0, 0.0))
    return sent / foretold if foretold else None


def fewest_bytes_ratio(block: Sequence[Launch]) -> float | None:
    """Metric: bytes of the busiest rank under the chosen number of groups, over the least under a given one; the
    largest over networks."""
    by_network: dict[tuple[object, ...], dict[int, float]] = {}
    for launch in block:
        case = launch.record.case
        if isinstance(case, TrainCase) and (found := _sent(launch.record)):
            by_network.setdefault((case.workload, case.width, case.ranks, case.minibatch), {})[case.groups] = max(
                found
            )[0]
    ratios = [
        sent[0] / min(others)
        for sent in by_network.values()
        if 0 in sent and (others := [sent[groups] for groups in sent if groups])
    ]
    return max(ratios, default=None)


METRICS = [
    Metric("hybrid_bytes_ratio", "1", None, launch=hybrid_bytes_ratio),
    Metric("fewest_bytes_ratio", "1", "lower", block=fewest_bytes_ratio),
    Metric("flop_per_byte", "flop/byte", None, model=flop_per_byte),
    Metric("machine_flop_per_byte", "flop/byte", None, model=machine_flop_per_byte),
    Metric("min_points_per_node", "points/node", "lower", model=min_points_per_node),
    Metric("max_nodes", "nodes", "higher", model=max_nodes),
    Metric("hybrid_groups", "groups", None, model=hybrid_groups),
    Metric("hybrid_groups_closed", "groups", None, model=hybrid_groups_closed),
    Metric("closed_form_excess", "fraction", "lower", model=closed_form_excess),
    Metric("published_efficiency", "fraction", "higher", model=published_efficiency),
]
