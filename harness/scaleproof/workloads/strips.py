"""A network whose fully connected layers are divided over the ranks of a group (das2016: model parallelism): one rank's
part of it, as a table of layers.

A strip is a range of a layer's output features. Every rank computes its strips for the samples ("points") of the whole
group. Activations are sent between ranks in layers of type `ExchangeLayer`: `border`, before the first strip, gathers
the samples of all ranks; `NAME.join`, after every strip, gathers the features of that layer."""

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
    """Exchanges activations; arrays are (points, features) float32. Returned arrays stay valid until the next pass."""

    def forward(self, own: np.ndarray) -> np.ndarray:
        """Returns the input of the next layer, given this rank's own output."""

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """Returns the gradient of `forward`'s argument, given the gradient of its result."""


class ActivationExchanges(Protocol):
    """Creates the exchanges of a divided network; a strategy implements it."""

    def border(self) -> ActivationExchange:
        """Gathers all points of the group on each of its ranks. Backward: the rank that owns a point receives the sum
        of its gradients."""

    def join(self, bounds: Sequence[int], last: bool) -> ActivationExchange:
        """Gathers all features on every rank; rank r has computed features bounds[r] to bounds[r + 1]. Backward: a rank
        receives the sum of the gradients of its features. At the `last` join, of the logits, all ranks have the same
        gradients."""


@dataclass(frozen=True, slots=True)
class ExchangeLayer(LayerSpec):
    """A layer that exchanges activations with other ranks."""

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
        """Share of the layer's parameters."""
        return (self.stop - self.start) / self.features

    @property
    def work(self) -> float:
        """Compute work relative to the whole layer on this rank's own points; 1 for equal strips."""
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
    """The layers that can be divided: consecutive fully connected layers at the end of the network."""
    layers: list[Layer] = []
    for layer in reversed(network.layers):
        if not isinstance(layer.spec, Linear) or layer.spec.each or (layers and layers[-1].inputs != (layer.name,)):
            break
        layers.append(layer)
    return tuple(reversed(layers))


def strip_bounds(features: int, parts: int) -> list[int]:
    """The start of each of `parts` nearly equal strips, and the end of the last one."""
    return [features * part // parts for part in range(parts + 1)]


def check_division(network: Network, parts: int) -> None:
    """Raises SpecError when the network's fully connected layers cannot be divided over `parts` ranks."""
    layers = tail(network)
    if network.auxiliary is not None or not layers:
        reason = (
            "an auxiliary head, whose logits"
            if network.auxiliary is not None
            else "no fully connected layers at its end, which"
        )
        raise SpecError(
            f"workload {network.name!r} has {reason} strategy 'hybrid' could divide; use 'distributed_update'"
        )
    narrow = min(layers, key=lambda layer: layer.output_shape[0])
    if narrow.output_shape[0] < parts:
        raise SpecError(
            f"layer {narrow.name!r} of {network.name!r} has {narrow.output_shape[0]} features for the {parts} "
            "ranks of a group; give more groups"
        )


def divided(network: Network, parts: int, rank: int, exchanges: ActivationExchanges) -> Network:
    """The network of rank `rank` among the `parts` ranks of its group. A single rank has the whole network."""
    check_division(network, parts)
    layers = tail(network)
    if parts == 1:
        return network
    before = layers[0].inputs
    divided_layers = [_crossing(BORDER, before, layers[0].input_shape, exchanges.border(), prod(layers[0].input_shape))]
    for layer in layers:
        bounds = strip_bounds(layer.output_shape[0], parts)
        strip = _strip(layer, bounds, rank, divided_layers[-1])
        join = exchanges.join(bounds, layer is layers[-1])
        divided_layers += [
            strip,
            _crossing(f"{layer.name}.join", (layer.name,), strip.output_shape, join, layer.output_shape[0]),
        ]
    return replace(network, layers=(*network.layers[: -len(layers)], *divided_layers))


def _strip(layer: Layer, bounds: Sequence[int], rank: int, before: Layer) -> Layer:
    """Rank `rank`'s strip of a fully connected layer, which reads layer `before`."""
    spec = layer.spec
    assert isinstance(spec, Linear)
    strip = Strip(
        layer.name,
        bounds[-1],
        classifier=spec.classifier,
        inputs=(before.name,),
        start=bounds[rank],
        stop=bounds[rank + 1],
        ranks=len(bounds) - 1,
    )
    shape, variables, mac, _ = strip.resolve([before.output_shape], 1.0)
    return Layer(strip, strip.inputs, before.output_shape, shape, variables, mac, mac)


def own_values(network: Network, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Parameters of a divided network, cut out of the parameters of the whole network."""
    specs = [layer.spec for layer in network.layers for _ in layer.variables]
    return [
        value[spec.start : spec.stop].copy() if isinstance(spec, Strip) else value
        for spec, value in zip(specs, values, strict=True)
    ]


def strips(network: Network) -> list[Strip | None]:
    """For every parameter of a divided network, the strip it belongs to; None: all ranks hold the parameter."""
    specs = [layer.spec for layer in network.layers for _ in layer.variables]
    return [spec if isinstance(spec, Strip) else None for spec in specs]


def _crossing(name: str, inputs: tuple[str, ...], shape: Shape, exchange: ActivationExchange, features: int) -> Layer:
    return Layer(ExchangeLayer(name, features, exchange, inputs=inputs), inputs, shape, (features,), (), 0, 0)
