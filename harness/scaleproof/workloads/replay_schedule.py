"""The schedule of a replayed pass, whose layers take the times of a profile: when gradients become final, and when
activations are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scaleproof.spec.emulated import shrunk
from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.strips import ActivationExchange, ExchangeLayer, Strip

if TYPE_CHECKING:
    from scaleproof.workloads.profile import Profile

SECOND = 1e9


class PassEvent(NamedTuple):
    """An event `due_ns` after the start of a section of a pass, at which the gradients of `parameters` become final.
    The `last` event ends its section. If it has an exchange, the next section begins after that."""

    due_ns: int
    parameters: tuple[int, ...] = ()
    last: bool = False
    exchange: Callable[[], object] | None = None


class ReplayedExchange:
    """An exchange of activations without meaningful values: arrays of the right size, forward and backward."""

    def __init__(
        self, exchange: ActivationExchange, features: int, batch: int, before: ReplayedExchange | None
    ) -> None:
        self._exchange, self._features, self._batch, self._before = exchange, features, batch, before
        self._own, self.received = (np.zeros((0, features), np.float32) for _ in range(2))

    def forward(self) -> None:
        """Sends the rank's own samples, or those received in the previous exchange."""
        points = self._batch if self._before is None else len(self._before.received)
        if len(self._own) != points:
            self._own = np.zeros((points, self._features), np.float32)
        self.received = self._exchange.forward(self._own)

    def backward(self) -> None:
        """Sends the gradients; call it after `forward`."""
        self._exchange.backward(self.received)


def replayed_exchanges(network: Network, batch: int, shrink: float) -> dict[str, ReplayedExchange]:
    """Exchanges of a divided network by the name of their layer; empty for a network that is not divided."""
    exchanges: dict[str, ReplayedExchange] = {}
    last: ReplayedExchange | None = None
    for layer in network.layers:
        if isinstance(layer.spec, ExchangeLayer):
            last = exchanges[layer.name] = ReplayedExchange(
                layer.spec.exchange, shrunk(prod(layer.input_shape), shrink), batch, last
            )
    return exchanges


def forward_events(
    network: Network, profile: Profile, dilation: float, exchanges: dict[str, ReplayedExchange]
) -> list[PassEvent]:
    """The exchanges and the end of a forward pass. A strip takes its share of the whole layer's time."""
    times = {layer.name: layer for layer in profile.layers}
    events, elapsed = [], 0.0
    for layer in network.layers:
        if layer.name in exchanges:
            events.append(PassEvent(_ns(elapsed, dilation), (), True, exchanges[layer.name].forward))
            elapsed = 0.0
        else:
            elapsed += times[layer.name].forward_s.median * _work(layer)
    return [*events, PassEvent(_ns(elapsed, dilation), (), True)]


def backward_events(
    network: Network, profile: Profile, dilation: float, exchanges: dict[str, ReplayedExchange]
) -> list[PassEvent]:
    """The events of a backward pass, last layer first. The gradient of the network's input is not computed."""
    times = {layer.name: layer for layer in profile.layers}
    first, numbered = 0, []
    for layer in network.layers:
        numbered.append((layer, tuple(range(first, first + len(layer.variables)))))
        first += len(layer.variables)
    events, elapsed = [], 0.0
    for layer, own in reversed(numbered):
        if layer.name not in exchanges:
            if own:
                events.append(
                    PassEvent(
                        _ns(elapsed + times[layer.name].weight_s.median * _work(layer), dilation), tuple(reversed(own))
                    )
                )
            elapsed += times[layer.name].backward_s.median * _work(layer)
        elif layer.inputs != (INPUT,):
            events.append(PassEvent(_ns(elapsed, dilation), (), True, exchanges[layer.name].backward))
            elapsed = 0.0
    return [*events, PassEvent(_ns(elapsed, dilation), (), True)]


def _work(layer: Layer) -> float:
    return layer.spec.work if isinstance(layer.spec, Strip) else 1.0


def _ns(seconds: float, dilation: float) -> int:
    return round(seconds * dilation * SECOND)
