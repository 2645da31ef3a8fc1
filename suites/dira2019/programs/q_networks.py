"""Q-networks, and what they see of plants and channels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from suite_programs.networked_plants import Array
from torch import Tensor, nn

SEEN_OF_PLANT = 6
"""Numbers about a plant in `of_plants`."""


def of_plants(factors: Array, x: Array, seen: Array, channel: Array, place: Array) -> Array:
    """What an iterative scheduler sees when it gives away channel `place` (worlds): (worlds, plants, 6). For each plant
    log(1 + (a x)^2), a, whether this channel was good when last seen, the share of later channels that were, whether
    the plant has a channel already, and how far the schedule is."""
    worlds, plants, channels = seen.shape
    place = np.broadcast_to(place, (worlds,))
    later = (np.arange(channels)[None, :] > place[:, None]).astype(np.float32)
    later /= np.maximum(later.sum(1, keepdims=True), 1)
    share = (seen.astype(np.float32) @ later[..., None])[..., 0]
    now = np.take_along_axis(seen, place[:, None, None], axis=2)[..., 0]
    view = np.empty((worlds, plants, SEEN_OF_PLANT), np.float32)
    view[..., 0] = np.log1p((factors * x) ** 2) / 2
    view[..., 1] = 4 * (factors - 1)
    view[..., 2] = now
    view[..., 3] = share
    view[..., 4] = has_channel(channel, place)
    view[..., 5] = (place / channels)[:, None]
    return view


def has_channel(channel: Array, place: Array) -> Array:
    """Whether a plant has one of the channels before `place` (worlds)."""
    return (channel >= 0) & (channel < place[:, None])


def of_whole(factors: Array, x: Array, seen: Array) -> Array:
    """What a flat scheduler sees: log(1 + (a x)^2) of each plant and all channels as last seen."""
    urgency = np.log1p((factors * x) ** 2) / 2
    return np.concatenate([urgency, seen.reshape(len(x), -1)], axis=1).astype(np.float32)


class Plain(nn.Module):
    """Two hidden layers over the whole view. Q = value + advantage (Wang et al. 2016)."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.value, self.advantage = nn.Linear(hidden, 1), nn.Linear(hidden, outputs)

    def forward(self, view: Tensor) -> Tensor:
        """(worlds, outputs)."""
        body = self.body(view.flatten(1))
        return self.value(body) + self.advantage(body)

    @property
    def outputs(self) -> int:
        """Values of Q for one view."""
        return self.advantage.out_features


class Shared(nn.Module):
    """One small network scores every plant, beside the mean over all plants: as many weights for any number of
    plants."""

    def __init__(self, hidden: int, plants: int) -> None:
        super().__init__()
        self.plants = plants
        self.own, self.other = nn.Linear(SEEN_OF_PLANT, hidden), nn.Linear(hidden, hidden)
        self.second, self.score, self.value = nn.Linear(hidden, hidden), nn.Linear(hidden, 1), nn.Linear(hidden, 1)

    def forward(self, view: Tensor) -> Tensor:
        """(worlds, plants)."""
        own = torch.relu(self.own(view))
        mean = own.mean(1)
        both = torch.relu(self.second(own) + self.other(mean)[:, None])
        return self.value(torch.relu(self.other(mean))) + self.score(both)[..., 0]

    @property
    def outputs(self) -> int:
        """Values of Q for one view: those of the score, for each plant."""
        return self.plants * self.score.out_features


class Built(nn.Module):
    """A network over the whole view that a library has built."""

    def __init__(self, network: nn.Module, outputs: int) -> None:
        super().__init__()
        self.network, self.outputs = network, outputs

    def forward(self, view: Tensor) -> Tensor:
        """(worlds, outputs)."""
        found: Tensor = self.network(view)
        return found


@dataclass(slots=True)
class Counted:
    """Forward passes of a network, the values of Q that they gave, and the multiply-adds of its linear layers."""

    passes: int = 0
    values: int = 0
    multiply_adds: int = 0


@contextmanager
def counted(network: nn.Module) -> Iterator[Counted]:
    """Counts what a network computes while this is open."""
    found = Counted()

    def layer(module: nn.Module, given: Any, out: Tensor) -> None:
        assert isinstance(module, nn.Linear)
        found.multiply_adds += out.numel() * module.in_features

    def whole(module: nn.Module, given: Any, out: Tensor) -> None:
        found.passes += 1
        found.values += out.numel()

    hooks = [each.register_forward_hook(layer) for each in network.modules() if isinstance(each, nn.Linear)]
    hooks.append(network.register_forward_hook(whole))
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def values(network: nn.Module, view: Array) -> Array:
    """Q of all actions, without gradients: (worlds, outputs)."""
    with torch.no_grad():
        found: Array = network(torch.from_numpy(view)).numpy()
    return found


def copied(network: Any, target: Any, share: float) -> None:
    """Moves the target network towards the network by this share."""
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), share)
