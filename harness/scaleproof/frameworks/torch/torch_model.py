"""A network in PyTorch, eager, float32, CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from scaleproof.frameworks.torch import torch_layers
from scaleproof.workloads.data import Batch
from scaleproof.workloads.model_contract import GradientPlacement, accuracy_of
from scaleproof.workloads.networks import AUXILIARY_WEIGHT, Network, evaluated


class TorchModel:
    """Implements workloads/model_contract.py. A hook copies autograd's new gradient into its bucket, which takes one
    read and one write; zeroing and accumulating would take two of each. With a GradientPlacement
    (remote/allocation_sites.py) gradients are allocated in the bucket where torch allows it."""

    def __init__(
        self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int
    ) -> None:
        torch.set_num_threads(threads)
        self._network, self._module = network, module_of(network)
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
        """See Model. Calls the kernel of torch.optim.SGD(fused=True) directly: torch.optim imports torch._dynamo, which
        takes a second in every launch."""
        parameters, gradients, velocities = (
            self._stepped if only is None else ([values[index] for index in only] for values in self._stepped)
        )
        torch._fused_sgd_(
            parameters,
            gradients,
            velocities if self._momentum else [],  # the kernel refuses them without momentum
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
        for parameter, target in zip(self._parameters, memory, strict=True):
            np.copyto(target, parameter.detach().numpy())
            parameter.data = torch.from_numpy(target)
        return True

    def values(self) -> list[np.ndarray]:
        """Views of the parameters."""
        return [parameter.detach().numpy() for parameter in self._parameters]

    def load(self, values: Sequence[np.ndarray]) -> None:
        """See Model."""
        for own, value in zip(self.values(), values, strict=True):
            np.copyto(own, value)

    def flat_values(self) -> list[np.ndarray]:
        """See Model; views where the parameters are contiguous."""
        return [value.reshape(-1) for value in self.values()]

    def load_flat(self, values: Sequence[np.ndarray]) -> None:
        """See Model."""
        self.load([value.reshape(own.shape) for value, own in zip(values, self.values(), strict=True)])

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Model."""
        module, inputs = self._module, batch.inputs
        if reference is not None and self._network.normalises:
            module = module_of(evaluated(self._network, len(reference.labels)))
            values = dict(zip(module.state_dict(), self._parameters, strict=True))
            module.load_state_dict(values, assign=True)
            inputs = np.concatenate([reference.inputs, inputs])
        with torch.inference_mode():
            outputs = logits(module, torch.from_numpy(inputs))[0].numpy()
        return accuracy_of(outputs[-len(batch.labels) :], batch.labels)

    def _hook(self, gradient: np.ndarray, ready: Callable[[int], None], index: int) -> Callable[[torch.Tensor], None]:
        view = self._gradients[index]

        def gradient_done(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            if self._placement is None:
                view.copy_(parameter.grad)
            else:
                self._placement.place(parameter.grad, lambda shape: gradient)
            parameter.grad = None  # the next backward pass makes a new gradient
            ready(index)

        return gradient_done


class Graph(nn.Module):
    """A network as a module. Its outputs are the logits, and those of the auxiliary head if there is one."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.layers = nn.ModuleList(torch_layers.module(layer, network.activation) for layer in network.layers)
        self.input_indices, self.heads = network.input_indices, network.heads

    def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Logits for inputs (n, *input_shape)."""
        outputs = [x]
        for layer, indices in zip(self.layers, self.input_indices, strict=True):
            outputs.append(layer(*(outputs[index] for index in indices)))
        head_outputs = tuple(outputs[head + 1] for head in self.heads)
        return head_outputs if len(head_outputs) > 1 else head_outputs[0]


def module_of(network: Network) -> Graph:
    """The network as a module without memory (device meta). Both frameworks take their initial values from data.py."""
    with torch.device("meta"):
        return Graph(network)


def logits(module: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Logits of every head of a network's module, which a library may have wrapped."""
    outputs = module(inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def loss_of(module: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean softmax cross-entropy over samples (and positions), plus the weighted loss of an auxiliary head; of a
    regression half the mean squared error."""
    return loss_of_heads(logits(module, inputs), labels)


def loss_of_heads(heads: torch.Tensor | tuple[torch.Tensor, ...], labels: torch.Tensor) -> torch.Tensor:
    """As `loss_of`, from the logits."""
    heads = heads if isinstance(heads, tuple) else (heads,)
    main, *auxiliary = (_loss_of_head(head, labels) for head in heads)
    return main + AUXILIARY_WEIGHT * auxiliary[0] if auxiliary else main


def _loss_of_head(head: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    if head.ndim - 1 < labels.ndim:  # one prediction for all positions of a sample
        labels = labels[..., 0] % head.shape[-1]
    if head.shape[-1] == 1:
        return (head.flatten() - labels.flatten()).square().mean() / 2
    return nn.functional.cross_entropy(head.flatten(0, -2), labels.flatten())
