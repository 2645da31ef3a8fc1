"""A network in PyTorch, eager, float32, CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from scaleproof.frameworks.torch import torch_layers
from scaleproof.workloads.data import Batch
from scaleproof.workloads.model_contract import GradientPlacement
from scaleproof.workloads.networks import AUXILIARY_WEIGHT, Network


class TorchModel:
    """Implements workloads/model_contract.py. A hook copies autograd's fresh gradient into its bucket: a read and a
    write; zeroing and accumulating take two of each. With `births` (remote/allocation_sites.py) gradients are born
    there instead, where torch can."""

    def __init__(
        self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int
    ) -> None:
        torch.set_num_threads(threads)
        self._module = module_of(network)
        self._module.load_state_dict(
            dict(zip(self._module.state_dict(), map(torch.from_numpy, values), strict=True)), assign=True
        )
        self._parameters: list[torch.Tensor] = list(self._module.parameters())
        self._gradients: list[torch.Tensor] = []
        self._stepped = [
            self._parameters,
            self._gradients,
            [torch.zeros_like(parameter) for parameter in self._parameters],
        ]
        self._learning_rate, self._momentum = learning_rate, momentum
        self._scale = 1.0
        self._loss = torch.zeros(())
        self._placement: GradientPlacement | None = None

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """See Model."""
        self._scale = scale
        for index, (parameter, gradient) in enumerate(zip(self._parameters, gradients, strict=True)):
            self._gradients.append(torch.from_numpy(gradient).view_as(parameter))
            parameter.register_post_accumulate_grad_hook(self._hook(gradient, ready, index))

    def forward(self, batch: Batch) -> float:
        """See Model."""
        loss = loss_of(self._module, torch.from_numpy(batch.inputs), torch.from_numpy(batch.labels))
        self._loss = loss * self._scale
        return loss.item()

    def backward(self) -> None:
        """See Model."""
        if self._placement is None:
            self._loss.backward()  # type: ignore[no-untyped-call]
            return
        self._placement.begin()
        with self._placement:
            self._loss.backward()  # type: ignore[no-untyped-call]

    def update(self, only: Sequence[int] | None = None) -> None:
        """See Model. The kernel under torch.optim.SGD(fused=True): torch.optim itself imports torch._dynamo, a second
        of every launch."""
        parameters, gradients, velocities = (
            self._stepped if only is None else ([values[index] for index in only] for values in self._stepped)
        )
        torch._fused_sgd_(
            parameters,
            gradients,
            velocities,
            weight_decay=0.0,
            momentum=self._momentum,
            lr=self._learning_rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )

    def step_pieces(self, values: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> None:
        """See PiecewiseModel."""
        pieces = [torch.from_numpy(piece) for piece in values]
        self._stepped = [
            pieces,
            [torch.from_numpy(piece) for piece in gradients],
            [torch.zeros_like(piece) for piece in pieces],
        ]

    def use_memory(self, memory: Sequence[np.ndarray], placement: GradientPlacement | None = None) -> bool:
        """See Model."""
        self._placement = placement
        for parameter, place in zip(self._parameters, memory, strict=True):
            np.copyto(place, parameter.detach().numpy())
            parameter.data = torch.from_numpy(place)
        return True

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
            found = logits(self._module, torch.from_numpy(batch.inputs))[0].argmax(dim=-1).numpy()
        return float((found == batch.labels).mean())

    def _hook(self, gradient: np.ndarray, ready: Callable[[int], None], index: int) -> Callable[[torch.Tensor], None]:
        view = self._gradients[index]

        def gradient_done(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            if self._placement is None:
                view.copy_(parameter.grad)
            else:
                self._placement.place(parameter.grad, lambda shape: gradient)
            parameter.grad = None  # the next backward pass brings a fresh one
            ready(index)

        return gradient_done


class Graph(nn.Module):
    """A network as a module: logits, and those of an auxiliary head behind them where there is one."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.layers = nn.ModuleList(torch_layers.module(layer, network.activation) for layer in network.layers)
        self.places, self.heads = network.places, network.heads

    def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Of inputs (n, *input_shape)."""
        outputs = [x]
        for layer, places in zip(self.layers, self.places, strict=True):
            outputs.append(layer(*(outputs[place] for place in places)))
        found = tuple(outputs[head + 1] for head in self.heads)
        return found if len(found) > 1 else found[0]


def module_of(network: Network) -> Graph:
    """The network as a module without memory (device meta): values come from data.py, so that both frameworks start
    from the same ones."""
    with torch.device("meta"):
        return Graph(network)


def logits(module: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of every head of a network's module, also of one that a library wraps."""
    found = module(inputs)
    return found if isinstance(found, tuple) else (found,)


def loss_of(module: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean softmax cross-entropy over samples (and positions), with that of an auxiliary head."""
    main, *auxiliary = (
        nn.functional.cross_entropy(found.flatten(0, -2), labels.flatten()) for found in logits(module, inputs)
    )
    return main + AUXILIARY_WEIGHT * auxiliary[0] if auxiliary else main
