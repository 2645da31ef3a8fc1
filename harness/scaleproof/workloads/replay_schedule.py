"""When what happens in a pass whose layers take as long as a profile says: gradients become final, activations go to
other ranks."""

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
    """What happens `due_ns` after a stretch of a pass began: the gradients of these parameters are final. The `last`
    act ends its stretch, perhaps by an exchange; the next one begins when that is over."""

    due_ns: int
    parameters: tuple[int, ...] = ()
    last: bool = False
    cross: Callable[[], object] | None = None


class ReplayedExchange:
    """An exchange of activations without values: arrays of the right size, there and back."""

    def __init__(self, way: ActivationExchange, features: int, batch: int, before: ReplayedExchange | None) -> None:
        self._way, self._features, self._batch, self._before = way, features, batch, before
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
                layer.spec.way, shrunk(prod(layer.input_shape), shrink), batch, last
            )
    return found


def forward_events(
    network: Network, profile: Profile, dilation: float, crossed: dict[str, ReplayedExchange]
) -> list[PassEvent]:
    """Nothing but exchanges happens before the end. A strip takes its share of a whole layer's work."""
    times = {layer.name: layer for layer in profile.layers}
    acts, passed = [], 0.0
    for layer in network.layers:
        if layer.name in crossed:
            acts.append(PassEvent(_ns(passed, dilation), (), True, crossed[layer.name].forward))
            passed = 0.0
        else:
            passed += times[layer.name].forward_s.median * _work(layer)
    return [*acts, PassEvent(_ns(passed, dilation), (), True)]


def backward_events(
    network: Network, profile: Profile, dilation: float, crossed: dict[str, ReplayedExchange]
) -> list[PassEvent]:
    """Last layer first; nobody wants the gradient of the network's input."""
    times = {layer.name: layer for layer in profile.layers}
    first, numbered = 0, []
    for layer in network.layers:
        numbered.append((layer, tuple(range(first, first + len(layer.variables)))))
        first += len(layer.variables)
    acts, passed = [], 0.0
    for layer, own in reversed(numbered):
        if layer.name not in crossed:
            if own:
                acts.append(
                    PassEvent(
                        _ns(passed + times[layer.name].weight_s.median * _work(layer), dilation), tuple(reversed(own))
                    )
                )
            passed += times[layer.name].backward_s.median * _work(layer)
        elif layer.inputs != (INPUT,):
            acts.append(PassEvent(_ns(passed, dilation), (), True, crossed[layer.name].backward))
            passed = 0.0
    return [*acts, PassEvent(_ns(passed, dilation), (), True)]


def _work(layer: Layer) -> float:
    return layer.spec.work if isinstance(layer.spec, Strip) else 1.0


def _ns(seconds: float, dilation: float) -> int:
    return round(seconds * dilation * SECOND)
