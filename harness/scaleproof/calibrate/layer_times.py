"""Measures the time of each layer of a network in a fresh process that does nothing else; run as `python -m
scaleproof.calibrate.layer_times REQUEST`, where REQUEST is JSON.

The model is the one that launches train (frameworks/torch/torch_model.py), with gradients copied into their buckets. A
layer's forward pass ends where that of the next layer begins. Autograd goes through the layers from the last to the
first: a layer's backward pass begins when the gradient of its output is complete, and ends where that of the next layer
begins; in between the gradients of its parameters arrive.
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
from scaleproof.workloads.data import Batch, initial_parameters
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.networks import Network

SEED = 20160222
WARMUP = 3
LEAST, MOST, BUDGET_S = 3, 40, 2.0
"""Timed steps of a process: as many as fit into the budget, at least LEAST and at most MOST."""
SECOND = 1e9


@dataclass(slots=True)
class Moments:
    """The moments of one step in ns, by number of the layer; `ready`: by number of the parameter."""

    start: int = 0
    forward_ends: dict[int, int] = field(default_factory=dict)
    backward_start: int = 0
    backward_starts: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    backward_end: int = 0
    end: int = 0


class TimedModel(TorchModel):
    """A model that records when each layer's passes begin and end."""

    def __init__(self, network: Network, threads: int) -> None:
        super().__init__(network, initial_parameters(network, SEED), learning_rate=1e-6, momentum=0.9, threads=threads)
        self.moments = Moments()
        for number, layer in enumerate(self._module.layers):
            layer.register_forward_hook(self._after(number))
        gradients = [np.zeros(value.size, np.float32) for value in self.values()]
        self.bind(gradients, 1.0, lambda index: self.moments.ready.__setitem__(index, now()))

    def _after(self, number: int) -> Any:
        def record(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
            if output.requires_grad:
                output.register_hook(lambda gradient: self.moments.backward_starts.__setitem__(number, now()))
            self.moments.forward_ends[number] = now()

        return record

    def timed_step(self, batch: Batch) -> Moments:
        """One step like that of a launch, without an exchange."""
        self.moments = moments = Moments(start=now())
        self.forward(batch)
        moments.backward_start = now()
        self.backward()
        moments.backward_end = now()
        self.update()
        moments.end = now()
        return moments


def times(network: Network, moments: Moments) -> dict[str, list[float]]:
    """The times of one step in s: `forward`, `backward` and `weight` by layer, and `update`. The times of the last
    layer include the loss."""
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
    """Medians of `times` over the timed steps of this process, and the number of `steps`."""
    model, data = TimedModel(network, threads), Synthetic(network, batch, SEED, 0, 1)
    warmup_s = [_length(model.timed_step(data.batch(step))) for step in range(WARMUP)]
    steps = max(LEAST, min(MOST, int(BUDGET_S / min(warmup_s))))
    steps_times = [times(network, model.timed_step(data.batch(step))) for step in range(steps)]
    return {name: medians([step[name] for step in steps_times]) for name in steps_times[0]} | {"steps": steps}


def _length(moments: Moments) -> float:
    return (moments.end - moments.start) / SECOND


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """Of each column: of a layer over all steps."""
    found: list[float] = np.median(np.array(rows), axis=0).tolist()
    return found


def main() -> None:
    """Print the result of `measure`."""
    request = json.loads(sys.argv[1])
    network: Network = registry.load("workload", request["workload"])(request["image_side"], request["width"])
    json.dump(measure(network, request["batch"], request["threads"]), sys.stdout)


if __name__ == "__main__":
    main()
