"""A stage of a pipeline in PyTorch, eager, float32, CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from scaleproof.frameworks.torch.torch_model import loss_of_heads, module_of
from scaleproof.workloads.networks import Network


@dataclass(slots=True)
class _Unit:
    """Samples between their passes. `run`: the forward pass, again where it is recomputed."""

    inputs: torch.Tensor
    run: Callable[[], torch.Tensor]
    outputs: torch.Tensor | None


class TorchStage:
    """Implements StageModel. Autograd adds into `gradient`, where each parameter has its view."""

    def __init__(self, network: Network, gradient: np.ndarray, *, first: bool, threads: int, recompute: bool) -> None:
        torch.set_num_threads(threads)
        self._network, self._first, self._recompute = network, first, recompute
        self._shapes = [shape for _, shape in network.parameter_shapes]
        self._gradients = self._views(gradient)
        self._module: nn.Module = module_of(network)
        self._units: dict[int, _Unit] = {}

    def _views(self, flat: np.ndarray) -> list[torch.Tensor]:
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        pieces = torch.from_numpy(flat).split(sizes)
        return [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def use(self, parameters: np.ndarray) -> None:
        """See StageModel."""
        module = module_of(self._network)
        module.load_state_dict(dict(zip(module.state_dict(), self._views(parameters), strict=True)), assign=True)
        for parameter, gradient in zip(module.parameters(), self._gradients, strict=True):
            parameter.grad = gradient
        self._module = module

    def forward(self, unit: int, inputs: np.ndarray) -> np.ndarray:
        """See StageModel."""
        module, tensor = self._module, self._tensor(inputs)
        outputs: torch.Tensor = self._begin(unit, tensor, lambda: module(tensor))
        return outputs.detach().numpy()

    def loss(self, unit: int, inputs: np.ndarray, labels: np.ndarray, scale: float) -> float:
        """See StageModel."""
        module, tensor, wanted = self._module, self._tensor(inputs), torch.from_numpy(labels)
        return self._begin(unit, tensor, lambda: loss_of_heads(module(tensor), wanted) * scale).item() / scale

    def _tensor(self, inputs: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(inputs).requires_grad_(not self._first)

    def _begin(self, unit: int, inputs: torch.Tensor, run: Callable[[], torch.Tensor]) -> torch.Tensor:
        if self._recompute:
            with torch.no_grad():
                outputs = run()
        else:
            outputs = run()
        self._units[unit] = _Unit(inputs, run, None if self._recompute else outputs)
        return outputs

    def backward(self, unit: int, gradient: np.ndarray | None) -> np.ndarray | None:
        """See StageModel."""
        begun = self._units.pop(unit)
        outputs = begun.run() if begun.outputs is None else begun.outputs
        outputs.backward(None if gradient is None else torch.from_numpy(gradient))  # type: ignore[no-untyped-call]
        return None if begun.inputs.grad is None else begun.inputs.grad.numpy()
