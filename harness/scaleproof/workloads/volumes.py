"""Bytes that a rank exchanges in a step when fully connected layers are divided inside G groups of N ranks (das2016,
hybrid parallelism).

The paper's two volumes of a layer with ifm inputs and ofm outputs at minibatch MB, with float32 and without overlap of
sending and receiving (overlap 0):
    comm_model = 2 * 4 * ifm * MB / G             activations forward, their gradients back; none at G = N
    comm_data  = 2 * 4 * ifm * ofm * G / N        gradients and new weights of a strip; none at G = 1
A ring over p ranks sends (p - 1) / p of a volume, so a rank sends comm_model * (P - 1) / P + comm_data * (G - 1) / G
with P = N / G. That sum is measured, and it decides on G, because it is also right for G = 1 and G = N.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt

from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.strips import check_division, strip_bounds, tail

FLOAT, LABEL = 4, 8
"""Bytes of a value and of a label."""
BOTH = 2
"""Forward and backward, or gradients and new weights."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes per rank and step."""

    groups: int
    comm_model: float
    """The paper's volume, over all divided layers."""
    comm_data: float
    activations: float
    """The part of comm_model that a rank sends: whole strips, without a gradient of the network's input."""
    logits: float
    """Logits and labels, which are gathered so that every rank of a group has the loss of the group's points. The
    paper's formulas omit them."""
    strips: float
    """The part of comm_data that the rank with the widest strips sends, biases included."""
    replicated: float
    """Bytes that a rank sends for parameters that all ranks hold: 2V(N-1)/N for every G."""

    @property
    def sent(self) -> float:
        """The bytes that depend on G."""
        return self.activations + self.logits + self.strips


def volume(network: Network, ranks: int, minibatch: int, groups: int) -> Volume:
    """The volume of a network with G = `groups`. Raises SpecError if its layers cannot be divided this way."""
    parts, points = ranks // groups, minibatch / groups
    check_division(network, parts)
    layers, inside, between = tail(network), (parts - 1) / parts, (groups - 1) / groups
    inputs = sum(prod(layer.input_shape) for layer in layers)
    weights = sum(layer.weights for layer in layers)
    rest = network.parameters - sum(layer.weights + layer.biases for layer in layers)
    return Volume(
        groups,
        comm_model=BOTH * FLOAT * inputs * points if parts > 1 else 0.0,
        comm_data=BOTH * FLOAT * weights / parts if groups > 1 else 0.0,
        activations=FLOAT
        * points
        * inside
        * (_first(layers[0]) + BOTH * sum(_widest(layer, parts) * parts for layer in layers[:-1])),
        logits=points * inside * (FLOAT * _widest(layers[-1], parts) * parts + LABEL),
        strips=BOTH * FLOAT * between * sum(_widest(layer, parts) * (prod(layer.input_shape) + 1) for layer in layers),
        replicated=BOTH * FLOAT * rest * (ranks - 1) / ranks,
    )


def volumes(network: Network, ranks: int, minibatch: int) -> list[Volume]:
    """Volumes for every number of groups that divides the ranks and leaves a feature for each rank of a group."""
    narrow = min(layer.output_shape[0] for layer in tail(network)) if tail(network) else 0
    return [
        volume(network, ranks, minibatch, groups)
        for groups in range(1, ranks + 1)
        if ranks % groups == 0 and ranks // groups <= max(narrow, 1)
    ]


def best_groups(network: Network, ranks: int, minibatch: int) -> int:
    """The number of groups with the fewest bytes sent; the smaller number if two are equal."""
    return min(volumes(network, ranks, minibatch), key=lambda candidate: (candidate.sent, candidate.groups)).groups


def formula_groups(network: Network, ranks: int, minibatch: int) -> int:
    """The number of groups with the least comm_model + comm_data, as the paper counts. It may differ from
    `best_groups`: with few groups or few ranks per group, the bytes sent are far below these volumes (CD-DNN at
    minibatch 1024 on 8 nodes: 1 group by volume, 2 by bytes sent)."""
    return min(
        volumes(network, ranks, minibatch),
        key=lambda candidate: (candidate.comm_model + candidate.comm_data, candidate.groups),
    ).groups


def closed_form_groups(network: Network, ranks: int, minibatch: int) -> float:
    """G* at which the derivative of comm_model + comm_data by G is zero; sqrt(N * MB / ofm) for one layer. It need not
    be a divisor of N, and ignores that one of the volumes vanishes at G = 1 and G = N."""
    layers = tail(network)
    return sqrt(
        ranks * minibatch * sum(prod(layer.input_shape) for layer in layers) / sum(layer.weights for layer in layers)
    )


def _widest(layer: Layer, parts: int) -> int:
    bounds = strip_bounds(layer.output_shape[0], parts)
    return max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))


def _first(layer: Layer) -> int:
    return prod(layer.input_shape) * (1 if layer.inputs == (INPUT,) else BOTH)
