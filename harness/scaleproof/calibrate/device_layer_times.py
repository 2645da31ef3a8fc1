"""Measures the time of each layer of a network on a GPU, in a fresh process that does nothing else; run as `python -m
scaleproof.calibrate.device_layer_times REQUEST`, where REQUEST is JSON.

Layers begin and end where they do in layer_times.py, but each moment is a CUDA event: the GPU notes when it gets there.
Steps follow one another without a wait, as in a training, so that the processor prepares kernels while the GPU
computes; where it is too slow for that, its delays are part of the times. The events are read at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import torch

from scaleproof.calibrate.device_environment import device_environment
from scaleproof.calibrate.layer_times import SEED, Moments, medians, times
from scaleproof.calibrate.measured_node_types import Precision
from scaleproof.core.recorder import now
from scaleproof.frameworks.torch.torch_model import loss_of, module_of
from scaleproof.spec import registry
from scaleproof.workloads.data import initial_parameters
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.networks import Network

WARMUP = 10
LEAST, MOST, BUDGET_S = 10, 100, 2.0
"""Timed steps of a process: as many as fit into the budget, at least LEAST and at most MOST."""
LEARNING_RATE, MOMENTUM = 1e-6, 0.9
Mark = TypeVar("Mark")


class Clock(Protocol[Mark]):
    """Marks moments of a device's work, and reads them once the work is done."""

    def mark(self) -> Mark:
        """A moment: when all that was given to the device before is done."""

    def finish(self) -> None:
        """Waits until all marks are there."""

    def ns(self, first: Mark, later: Mark) -> int:
        """From one mark to another, in ns."""


class CudaClock:
    """CUDA events on the current stream; their resolution is about 0.5 us."""

    def mark(self) -> torch.cuda.Event:
        """See Clock."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def finish(self) -> None:
        """See Clock."""
        torch.cuda.synchronize()

    def ns(self, first: torch.cuda.Event, later: torch.cuda.Event) -> int:
        """See Clock."""
        return round(first.elapsed_time(later) * 1e6)


class HostClock:
    """The processor's clock, for a device whose calls return when the work is done."""

    def mark(self) -> int:
        """See Clock."""
        return now()

    def finish(self) -> None:
        """See Clock."""

    def ns(self, first: int, later: int) -> int:
        """See Clock."""
        return later - first


@dataclass(slots=True)
class Marks(Generic[Mark]):
    """The marks of one step, by number of the layer; `ready`: by number of the parameter. As Moments, not yet read."""

    start: Mark
    forward_ends: dict[int, Mark] = field(default_factory=dict)
    backward_start: Mark | None = None
    backward_starts: dict[int, Mark] = field(default_factory=dict)
    ready: dict[int, Mark] = field(default_factory=dict)
    backward_end: Mark | None = None
    end: Mark | None = None

    def read(self, clock: Clock[Mark]) -> Moments:
        """In ns since the step's start."""

        def since(mark: Mark | None) -> int:
            assert mark is not None, "the step was not done"
            return clock.ns(self.start, mark)

        def each(marks: dict[int, Mark]) -> dict[int, int]:
            return {number: since(mark) for number, mark in marks.items()}

        return Moments(
            start=0,
            forward_ends=each(self.forward_ends),
            backward_start=since(self.backward_start),
            backward_starts=each(self.backward_starts),
            ready=each(self.ready),
            backward_end=since(self.backward_end),
            end=since(self.end),
        )


class DeviceModel(Generic[Mark]):
    """The network on a device. Gradients are copied into buckets there and SGD updates the parameters, as in a launch
    (frameworks/torch/torch_model.py), but the inputs stay on the device and nothing waits for the loss."""

    def __init__(self, network: Network, device: str, precision: Precision, clock: Clock[Mark]) -> None:
        self._clock, self._precision, self._device = clock, precision, torch.device(device)
        self._module = module_of(network)
        values = [torch.from_numpy(value).to(self._device) for value in initial_parameters(network, SEED)]
        self._module.load_state_dict(dict(zip(self._module.state_dict(), values, strict=True)), assign=True)
        self._parameters: list[torch.Tensor] = list(self._module.parameters())
        self._gradients = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._velocities = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._marks = Marks(clock.mark())
        for number, layer in enumerate(self._module.layers):
            layer.register_forward_hook(self._after_layer(number))
        for index, parameter in enumerate(self._parameters):
            parameter.register_post_accumulate_grad_hook(self._gradient_done(index))

    def step(self, inputs: torch.Tensor, labels: torch.Tensor) -> Marks[Mark]:
        """One step without an exchange; its marks can be read after `finish`."""
        self._marks = marks = Marks(self._clock.mark())
        with self._products():
            loss = loss_of(self._module, inputs, labels)
        marks.backward_start = self._clock.mark()
        loss.backward()  # type: ignore[no-untyped-call]
        marks.backward_end = self._clock.mark()
        self._update()
        marks.end = self._clock.mark()
        return marks

    def _products(self) -> AbstractContextManager[Any]:
        """Where layers multiply in 16 bits, with parameters and sums in 32."""
        if self._precision == "bfloat16":
            return torch.autocast(self._device.type, dtype=torch.bfloat16)
        return nullcontext()

    def _update(self) -> None:
        with torch.no_grad():
            torch._fused_sgd_(
                self._parameters,
                self._gradients,
                self._velocities,
                weight_decay=0.0,
                momentum=MOMENTUM,
                lr=LEARNING_RATE,
                dampening=0.0,
                nesterov=False,
                maximize=False,
                is_first_step=False,
            )

    def _after_layer(self, number: int) -> Callable[..., None]:
        def record(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
            if output.requires_grad:
                output.register_hook(lambda gradient: self._begin_backward(number))
            self._marks.forward_ends[number] = self._clock.mark()

        return record

    def _begin_backward(self, number: int) -> None:
        self._marks.backward_starts[number] = self._clock.mark()

    def _gradient_done(self, index: int) -> Callable[[torch.Tensor], None]:
        def done(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            self._gradients[index].copy_(parameter.grad)
            parameter.grad = None  # the next backward pass makes a new gradient
            self._marks.ready[index] = self._clock.mark()

        return done


def set_precision(precision: Precision) -> None:
    """Whether products of 32-bit floats may round their factors to TensorFloat-32."""
    rounds = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = rounds
    torch.backends.cudnn.allow_tf32 = rounds
    torch.backends.cudnn.benchmark = True  # shapes do not change from step to step


def measure(
    network: Network, batch: int, device: str, precision: Precision, clock: Clock[Any], budget_s: float = BUDGET_S
) -> dict[str, Any]:
    """Medians of `times` over the timed steps of this process, and the number of `steps`."""
    set_precision(precision)
    model, sample = DeviceModel(network, device, precision, clock), Synthetic(network, batch, SEED, 0, 1).batch(0)
    inputs, labels = (torch.from_numpy(values).to(device) for values in (sample.inputs, sample.labels))

    def steps(count: int) -> list[Moments]:
        marks = [model.step(inputs, labels) for _ in range(count)]
        clock.finish()
        return [each.read(clock) for each in marks]

    fastest_s = min(moments.end for moments in steps(WARMUP)) / 1e9
    count = max(LEAST, min(MOST, int(budget_s / fastest_s)))
    rows = [times(network, moments) for moments in steps(count)]
    return {name: medians([row[name] for row in rows]) for name in rows[0]} | {"steps": count}


def main() -> None:
    """Print the result of `measure` and the `environment`; end with a reason where the memory is too small."""
    request = json.loads(sys.argv[1])
    network: Network = registry.load("workload", request["workload"])(request["image_side"], request["width"])
    torch.cuda.set_device(request["device"])
    try:
        result = measure(network, request["batch"], request["device"], request["precision"], CudaClock())
    except torch.cuda.OutOfMemoryError:
        sys.exit(f"the GPU's memory is too small for {request['batch']} samples; choose a smaller --batch")
    json.dump(result | {"environment": device_environment(request["device"])}, sys.stdout)


if __name__ == "__main__":
    main()
