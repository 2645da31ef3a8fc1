"""The schedule of a replayed pass, whose layers take as long as a profile says: when gradients become final, and when
activations are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from scaleproof.spec.emulated import shrunk
from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.profile import Profile
from scaleproof.workloads.strips import ActivationExchange, ExchangeLayer, Strip

SECOND = 1e9


class PassEvent(NamedTuple):
    """An event `due_ns` after the start of a section of a pass: the gradients of these parameters are final. The `last`
    event ends its section, perhaps by an exchange; the next section begins after that."""

    due_ns: int
    parameters: tuple[int, ...] = ()
    last: bool = False
    exchange: Callable[[], object] | None = None


class ReplayedExchange:
    """An exchange of activations without values: arrays of the right size, there and back."""

    def __init__(
        self, exchange: ActivationExchange, features: int, batch: int, before: ReplayedExchange | None
    ) -> None:
        self._way, self._features, self._batch, self._before = exchange, features, batch, before
        self._own, self.found = (np.zeros((0, features), np.float32) for _ in range(2))

    def forward(self) -> None:
        """From the rank's own points, or from those that the exchange before brought."""
        points = self._batch if self._before is None else len(self._before.found)
        if len(self._own) != points:
            self._own = np.zeros((points, self._features), np.float32)
        self.found = self._way.forward(self._own)

    def backward(self) -> None:
        """After `forward`."""
        self._way.backward(self.found)


def replayed_exchanges(network: Network, batch: int, shrink: float) -> dict[str, ReplayedExchange]:
    """Those of a divided network by the layer's name; none of a whole one."""
    found: dict[str, ReplayedExchange] = {}
    last: ReplayedExchange | None = None
    for layer in network.layers:
        if isinstance(layer.spec, ExchangeLayer):
            last = found[layer.name] = ReplayedExchange(
                layer.spec.exchange, shrunk(prod(layer.input_shape), shrink), batch, last
            )
    return found


def forward_events(
    network: Network, profile: Profile, dilation: float, exchanges: dict[str, ReplayedExchange]
) -> list[PassEvent]:
    """Exchanges, and the end of the pass. A strip takes its share of a whole layer's time."""
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
    """Last layer first; the gradient of the network's input is not computed."""
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
