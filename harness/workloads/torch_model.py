"""A network in PyTorch, eager, float32, CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from harness.workloads.data import Batch
from harness.workloads.networks import Activation, Conv, Layer, Network, Pool


class TorchModel:
    """Implements workloads/model.py. A hook copies autograd's fresh gradient into its bucket: a read and a write; zeroing and accumulating take two of each."""

    def __init__(self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int) -> None:
        torch.set_num_threads(threads)
        self._module = module_of(network)
        self._module.load_state_dict(dict(zip(self._module.state_dict(), map(torch.from_numpy, values), strict=True)), assign=True)
        self._parameters: list[torch.Tensor] = list(self._module.parameters())
        self._gradients: list[torch.Tensor] = []
        self._velocities = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._learning_rate, self._momentum = learning_rate, momentum
        self._scale = 1.0
        self._loss = torch.zeros(())

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """See Model."""
        self._scale = scale
        for index, (parameter, gradient) in enumerate(zip(self._parameters, gradients, strict=True)):
            self._gradients.append(torch.from_numpy(gradient).view_as(parameter))
            parameter.register_post_accumulate_grad_hook(_hook(self._gradients[index], ready, index))

    def forward(self, batch: Batch) -> float:
        """See Model."""
        loss: torch.Tensor = nn.functional.cross_entropy(self._module(torch.from_numpy(batch.inputs)), torch.from_numpy(batch.labels))
        self._loss = loss * self._scale
        return loss.item()

    def backward(self) -> None:
        """See Model."""
        self._loss.backward()  # type: ignore[no-untyped-call]

    def update(self) -> None:
        """See Model. The kernel under torch.optim.SGD(fused=True): torch.optim itself imports torch._dynamo, a second of every launch."""
        torch._fused_sgd_(
            self._parameters, self._gradients, self._velocities,
            weight_decay=0.0, momentum=self._momentum, lr=self._learning_rate, dampening=0.0, nesterov=False, maximize=False, is_first_step=False,
        )  # fmt: skip

    def values(self) -> list[np.ndarray]:
        """Views of the parameters."""
        return [parameter.detach().numpy() for parameter in self._parameters]

    def load(self, values: Sequence[np.ndarray]) -> None:
        """See Model."""
        for own, value in zip(self.values(), values, strict=True):
            np.copyto(own, value)

    def accuracy(self, batch: Batch) -> float:
        """See Model."""
        with torch.inference_mode():
            found = self._module(torch.from_numpy(batch.inputs)).argmax(dim=1).numpy()
        return float((found == batch.labels).mean())


def module_of(network: Network) -> nn.Sequential:
    """The network as a module without memory (device meta): values come from data.py, so that both frameworks start from the same ones."""
    with torch.device("meta"):
        return nn.Sequential(*(module for layer in network.layers for module in _modules(layer, network.activation)))


def _modules(layer: Layer, activation: Activation) -> list[nn.Module]:
    spec = layer.spec
    if isinstance(spec, Pool):
        return [nn.AvgPool2d(spec.kernel) if spec.average else nn.MaxPool2d(spec.kernel)]
    active = nn.ReLU(inplace=True) if activation == "relu" else nn.Tanh()
    if isinstance(spec, Conv):
        return [nn.Conv2d(layer.input_shape[0], layer.biases, spec.kernel, stride=spec.stride, padding=spec.pad), active]
    flatten: list[nn.Module] = [nn.Flatten()] if len(layer.input_shape) > 1 else []
    linear: list[nn.Module] = [nn.Linear(layer.weight_shape[1], layer.biases)]
    return flatten + (linear if spec.classifier else [*linear, active])


def _hook(view: torch.Tensor, ready: Callable[[int], None], index: int) -> Callable[[torch.Tensor], None]:
    def gradient_done(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        view.copy_(parameter.grad)
        parameter.grad = None  # the next backward pass brings a fresh one
        ready(index)

    return gradient_done
