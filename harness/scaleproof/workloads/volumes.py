"""Bytes that a rank exchanges in a step when fully connected layers are divided inside G groups of N ranks (das2016,
hybrid parallelism).

The paper's two volumes of a layer of ifm inputs and ofm outputs at minibatch MB, with float32 and nothing received
while something is sent (overlap 0):
    comm_model = 2 * 4 * ifm * MB / G             activations forward, their gradients back; none at G = N
    comm_data  = 2 * 4 * ifm * ofm * G / N        gradients and new weights of a strip; none at G = 1
A ring over p ranks sends (p - 1) / p of a volume, so what a rank sends is comm_model * (P - 1) / P + comm_data * (G -
1) / G with P = N / G: that is what is measured, and what decides, since it knows the two ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt

from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.strips import check_division, strip_bounds, tail

FLOAT, LABEL = 4, 8
"""Bytes of a value and of a label."""
BOTH = 2
"""There and back."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes of a rank and step."""

    groups: int
    comm_model: float
    """As the paper has it, over all divided layers."""
    comm_data: float
    activations: float
    """What a rank sends of comm_model: whole strips, no gradient of the network's own input."""
    logits: float
    """Logits and labels, which come together so that every rank of a group has the loss of the group's points; not in
    the paper's formulas."""
    strips: float
    """What the rank with the widest strips sends of comm_data, biases included."""
    replicated: float
    """What it sends for parameters that all ranks hold: 2V(N-1)/N, the same for every G."""

    @property
    def sent(self) -> float:
        """What G decides of."""
        return self.activations + self.logits + self.strips


def volume(network: Network, ranks: int, minibatch: int, groups: int) -> Volume:
    """Of a whole network; SpecError where its layers cannot be divided so."""
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
    """For every number of groups that divides the ranks and the layers."""
    narrow = min(layer.output_shape[0] for layer in tail(network)) if tail(network) else 0
    return [
        volume(network, ranks, minibatch, groups)
        for groups in range(1, ranks + 1)
        if ranks % groups == 0 and ranks // groups <= max(narrow, 1)
    ]


def best_groups(network: Network, ranks: int, minibatch: int) -> int:
    """The number of groups that sends the fewest bytes; of equals the smaller one."""
    return min(volumes(network, ranks, minibatch), key=lambda found: (found.sent, found.groups)).groups


def formula_groups(network: Network, ranks: int, minibatch: int) -> int:
    """The divisor with the least comm_model + comm_data, as the paper counts. It may be another than `best_groups`: in
    few groups and with few ranks in one, much less is sent than these volumes (CD-DNN at minibatch 1024 on 8 nodes: 1
    group by the volumes, 2 by what is sent)."""
    return min(
        volumes(network, ranks, minibatch), key=lambda found: (found.comm_model + found.comm_data, found.groups)
    ).groups


def closed_form_groups(network: Network, ranks: int, minibatch: int) -> float:
    """G* where the derivative of comm_model + comm_data by G is zero; it knows nothing of divisors nor of the two ends.
    sqrt(N * MB / ofm) for one layer."""
    layers = tail(network)
    return sqrt(
        ranks * minibatch * sum(prod(layer.input_shape) for layer in layers) / sum(layer.weights for layer in layers)
    )


def _widest(layer: Layer, parts: int) -> int:
    bounds = strip_bounds(layer.output_shape[0], parts)
    return max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))


def _first(layer: Layer) -> int:
    return prod(layer.input_shape) * (1 if layer.inputs == (INPUT,) else BOTH)
