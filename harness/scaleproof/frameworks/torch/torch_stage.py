"""A stage of a pipeline in PyTorch, eager, float32, CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.fx.experimental.symbolic_shapes  # the first backward pass with a gradient would import it, on every rank
from torch.func import functional_call

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
        self._first, self._recompute = first, recompute
        self._shapes = [shape for _, shape in network.parameter_shapes]
        self._gradients = self._views(gradient)
        self._module = module_of(network)
        self._names = list(self._module.state_dict())
        self._values: dict[str, torch.Tensor] = {}
        """Of the parameters in use; a unit on its way keeps those of its forward pass."""
        self._units: dict[int, _Unit] = {}

    def _views(self, flat: np.ndarray) -> list[torch.Tensor]:
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        pieces = torch.from_numpy(flat).split(sizes)
        return [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def use(self, parameters: np.ndarray) -> None:
        """See StageModel."""
        values = [value.requires_grad_() for value in self._views(parameters)]
        for value, gradient in zip(values, self._gradients, strict=True):
            value.grad = gradient
        self._values = dict(zip(self._names, values, strict=True))

    def forward(self, unit: int, inputs: np.ndarray) -> np.ndarray:
        """See StageModel."""
        tensor = self._tensor(inputs)
        outputs: torch.Tensor = self._begin(unit, tensor, self._pass(tensor))
        return outputs.detach().numpy()

    def loss(self, unit: int, inputs: np.ndarray, labels: np.ndarray, scale: float) -> float:
        """See StageModel."""
        tensor, wanted = self._tensor(inputs), torch.from_numpy(labels)
        run = self._pass(tensor)
        return self._begin(unit, tensor, lambda: loss_of_heads(run(), wanted) * scale).item() / scale

    def _pass(self, inputs: torch.Tensor) -> Callable[[], Any]:
        """The module with the parameters in use. Making a module for each change of theirs took longer than passes."""
        return partial(functional_call, self._module, self._values, (inputs,))

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
