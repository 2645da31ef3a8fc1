"""How long each layer of a network takes in one fresh process that does nothing else; run as `python -m
scaleproof.calibrate.layer_times REQUEST`, which is JSON.

The model is the one that launches train with (frameworks/torch/torch_model.py), gradients copied into their buckets and
all. A layer's forward pass ends where the next one's begins. Autograd goes through the layers from the last to the
first, one after the other: a layer's backward pass begins when the gradient of its output is whole, and ends where the
next one's begins; in between its parameters' gradients arrive.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from scaleproof.core.recorder import now
from scaleproof.frameworks.torch.torch_model import TorchModel
from scaleproof.spec import registry
from scaleproof.workloads.data import Batch, Synthetic, initial_parameters
from scaleproof.workloads.networks import Network

SEED = 20160222
WARMUP = 3
LEAST, MOST, BUDGET_S = 3, 40, 2.0
"""Timed steps of a process: as many as fit into the budget, within these."""
SECOND = 1e9


@dataclass(slots=True)
class Moments:
    """When things happened in one step, in ns; by layer or parameter number, None where nothing was to happen."""

    start: int = 0
    forward_ends: dict[int, int] = field(default_factory=dict)
    backward_start: int = 0
    backward_starts: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    backward_end: int = 0
    end: int = 0


class TimedModel(TorchModel):
    """Notes when each layer's passes begin and end."""

    def __init__(self, network: Network, threads: int) -> None:
        super().__init__(network, initial_parameters(network, SEED), learning_rate=1e-6, momentum=0.9, threads=threads)
        self.moments = Moments()
        for number, layer in enumerate(self._module.layers):
            layer.register_forward_hook(self._after(number))
        gradients = [np.zeros(value.size, np.float32) for value in self.values()]
        self.bind(gradients, 1.0, lambda index: self.moments.ready.__setitem__(index, now()))

    def _after(self, number: int) -> Any:
        def noted(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
            if output.requires_grad:
                output.register_hook(lambda gradient: self.moments.backward_starts.__setitem__(number, now()))
            self.moments.forward_ends[number] = now()

        return noted

    def timed_step(self, batch: Batch) -> Moments:
        """One step as a launch makes it, without an exchange."""
        self.moments = moments = Moments(start=now())
        self.forward(batch)
        moments.backward_start = now()
        self.backward()
        moments.backward_end = now()
        self.update()
        moments.end = now()
        return moments


def times(network: Network, moments: Moments) -> dict[str, list[float]]:
    """Of one step, in s: `forward`, `backward` and `weight` by layer, and `update`. The last layer's times hold the
    loss."""
    last = len(network.layers) - 1
    ends = [moments.start, *(moments.forward_ends[number] for number in range(last)), moments.backward_start]
    forward = np.diff(ends)
    backward, weight = np.zeros(last + 1), np.zeros(last + 1)
    starts = sorted(
        (moment, number) for number, moment in (moments.backward_starts | {last: moments.backward_start}).items()
    )
    for (start, number), (end, _) in zip(starts, [*starts[1:], (moments.backward_end, -1)], strict=True):
        backward[number] = end - start
        arrived = [moments.ready[index] for index in _parameters(network, number)]
        weight[number] = min(max(arrived, default=start) - start, end - start)
    values = {
        "forward": forward,
        "backward": backward,
        "weight": weight,
        "update": np.array([moments.end - moments.backward_end]),
    }
    return {name: (times / SECOND).tolist() for name, times in values.items()}


def _parameters(network: Network, number: int) -> range:
    """Numbers of a layer's parameters."""
    before = sum(len(layer.variables) for layer in network.layers[:number])
    return range(before, before + len(network.layers[number].variables))


def measure(network: Network, batch: int, threads: int) -> dict[str, Any]:
    """Medians over the timed steps of this process, as `times` gives them, and the number of those `steps`."""
    model, data = TimedModel(network, threads), Synthetic(network, batch, SEED, 0, 1)
    took = [_length(model.timed_step(data.batch(step))) for step in range(WARMUP)]
    steps = max(LEAST, min(MOST, int(BUDGET_S / min(took))))
    steps_times = [times(network, model.timed_step(data.batch(step))) for step in range(steps)]
    return {name: _medians([step[name] for step in steps_times]) for name in steps_times[0]} | {"steps": steps}


def _length(moments: Moments) -> float:
    return (moments.end - moments.start) / SECOND


def _medians(rows: Sequence[Sequence[float]]) -> list[float]:
    medians: list[float] = np.median(np.array(rows), axis=0).tolist()
    return medians


def main() -> None:
    """Print what `measure` found."""
    request = json.loads(sys.argv[1])
    network: Network = registry.load("workload", request["workload"])(request["image_side"], request["width"])
    json.dump(measure(network, request["batch"], request["threads"]), sys.stdout)


if __name__ == "__main__":
    main()
