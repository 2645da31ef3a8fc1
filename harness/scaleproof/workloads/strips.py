"""A network whose fully connected layers are divided over the ranks of a group (das2016: model parallelism): what one
rank has of it, as a table of layers.

Every rank of a group works on all points of the group in its strip of each layer's output features. Where activations
go from rank to rank the table has a layer of its own, `ExchangeLayer`: before the first strip (`border`) the points of
all ranks come together, behind every strip (`NAME.join`) its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np

from scaleproof.spec.errors import SpecError
from scaleproof.workloads.layers import LayerSpec, Linear, Resolved, Shape, Variable
from scaleproof.workloads.networks import Layer, Network

BORDER = "border"


class ActivationExchange(Protocol):
    """How activations are exchanged; arrays are (points, features) float32. Returned arrays stay unchanged until the
    next pass."""

    def forward(self, own: np.ndarray) -> np.ndarray:
        """The input of the next layer, from this rank's own output."""

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient of `forward`'s argument, from that of its result."""


class ActivationExchanges(Protocol):
    """What makes them: a strategy."""

    def border(self) -> ActivationExchange:
        """All points of the group to each of its ranks; back: the sum of a point's gradients to whom it belongs."""

    def join(self, bounds: Sequence[int], last: bool) -> ActivationExchange:
        """All features to every rank, of which rank r has those from bounds[r] to bounds[r + 1]; back: the sum of the
        gradients of the own ones, which all ranks have alike where it is the `last` join, of the logits."""


@dataclass(frozen=True, slots=True)
class ExchangeLayer(LayerSpec):
    """Activations are sent to other ranks, and received from them."""

    features: int
    exchange: ActivationExchange

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        return Resolved((self.features,))


@dataclass(frozen=True, slots=True)
class Strip(Linear):
    """Output features `start` to `stop` of a fully connected layer of `features`, on the points of all `ranks` of a
    group."""

    start: int = 0
    stop: int = 0
    ranks: int = 1

    @property
    def share(self) -> float:
        """Of the layer's parameters."""
        return (self.stop - self.start) / self.features

    @property
    def work(self) -> float:
        """Beside that of the whole layer on this rank's own points; 1 for even strips."""
        return self.share * self.ranks

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        rows, fan_in = self.stop - self.start, prod(shapes[0])
        mark = f"[{self.start}:{self.stop}]"
        variables = (
            Variable(f"weight{mark}", (rows, fan_in), "normal", fan_in),
            Variable(f"bias{mark}", (rows,), "zeros"),
        )
        return Resolved((rows,), variables, rows * fan_in)


def tail(network: Network) -> tuple[Layer, ...]:
    """The fully connected layers at the network's end, each of which reads the one before: what can be divided."""
    found: list[Layer] = []
    for layer in reversed(network.layers):
        if not isinstance(layer.spec, Linear) or layer.spec.each or (found and found[-1].inputs != (layer.name,)):
            break
        found.append(layer)
    return tuple(reversed(found))


def strip_bounds(features: int, parts: int) -> list[int]:
    """The start of each strip of a layer, and its end: nearly equal strips."""
    return [features * part // parts for part in range(parts + 1)]


def check_division(network: Network, parts: int) -> None:
    """SpecError when the network's fully connected layers cannot be divided over so many ranks."""
    layers = tail(network)
    if network.auxiliary is not None or not layers:
        what = (
            "an auxiliary head, whose logits"
            if network.auxiliary is not None
            else "no fully connected layers at its end, which"
        )
        raise SpecError(
            f"workload {network.name!r} has {what} strategy 'hybrid' could divide; use 'distributed_update'"
        )
    narrow = min(layers, key=lambda layer: layer.output_shape[0])
    if narrow.output_shape[0] < parts:
        raise SpecError(
            f"layer {narrow.name!r} of {network.name!r} has {narrow.output_shape[0]} features for the {parts} "
            "ranks of a group; give more groups"
        )


def divided(network: Network, parts: int, rank: int, exchanges: ActivationExchanges) -> Network:
    """The network of one rank among the `parts` of its group. A single rank has all of it."""
    check_division(network, parts)
    layers = tail(network)
    if parts == 1:
        return network
    before = layers[0].inputs
    found = [_crossing(BORDER, before, layers[0].input_shape, exchanges.border(), prod(layers[0].input_shape))]
    for layer in layers:
        bounds = strip_bounds(layer.output_shape[0], parts)
        spec = layer.spec
        assert isinstance(spec, Linear)
        strip = Strip(
            layer.name,
            bounds[-1],
            classifier=spec.classifier,
            inputs=(found[-1].name,),
            start=bounds[rank],
            stop=bounds[rank + 1],
            ranks=parts,
        )
        resolved = strip.resolve([found[-1].output_shape], 1.0)
        found.append(
            Layer(
                strip,
                strip.inputs,
                found[-1].output_shape,
                resolved.output_shape,
                resolved.variables,
                resolved.mac,
                resolved.mac,
            )
        )
        found.append(
            _crossing(
                f"{layer.name}.join",
                (layer.name,),
                resolved.output_shape,
                exchanges.join(bounds, layer is layers[-1]),
                layer.output_shape[0],
            )
        )
    return replace(network, layers=(*network.layers[: -len(layers)], *found))


def own_values(network: Network, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Parameters of a divided network from those of the whole one."""
    specs = [layer.spec for layer in network.layers for _ in layer.variables]
    return [
        value[spec.start : spec.stop].copy() if isinstance(spec, Strip) else value
        for spec, value in zip(specs, values, strict=True)
    ]


def strips(network: Network) -> list[Strip | None]:
    """For every parameter of a divided network the strip that it belongs to; None: all ranks hold it."""
    specs = [layer.spec for layer in network.layers for _ in layer.variables]
    return [spec if isinstance(spec, Strip) else None for spec in specs]


def _crossing(name: str, inputs: tuple[str, ...], shape: Shape, exchange: ActivationExchange, features: int) -> Layer:
    return Layer(ExchangeLayer(name, features, exchange, inputs=inputs), inputs, shape, (features,), (), 0, 0)
