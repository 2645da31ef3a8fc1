"""Many replicas of one network as one batched model, by torch.func."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, vmap

from scaleproof.frameworks.torch.torch_model import loss_of_heads, module_of
from scaleproof.workloads.data import Batch
from scaleproof.workloads.model_contract import accuracy_of
from scaleproof.workloads.networks import Network, evaluated
from scaleproof.workloads.stacked_contract import StackedGradients, stacked_inputs

Values = dict[str, torch.Tensor]


class TorchReplicas:
    """Implements workloads/stacked_contract.py. Parameters are views of the caller's rows; each gradient is copied once
    into its place. The gradient of the sum of all losses is taken outside of vmap, since one replica's loss does not
    depend on another's parameters: torch.func.grad would import torch's compiler, which takes a second."""

    def __init__(self, network: Network, threads: int = 1) -> None:
        torch.set_num_threads(threads)
        self.parameters = network.parameters
        self._network, self._module = network, module_of(network)
        shapes = [shape for _, shape in network.parameter_shapes]
        ends = list(accumulate(map(prod, shapes)))
        starts = [0, *ends[:-1]]
        self._places = dict(zip(self._module.state_dict(), zip(starts, ends, shapes, strict=True), strict=True))
        self._losses = vmap(self._loss)

    def gradients(
        self, parameters: np.ndarray, batches: Sequence[Batch], out: np.ndarray | None = None
    ) -> StackedGradients:
        """See StackedModel."""
        batch = stacked_inputs(parameters, batches, self.parameters)
        values = {name: value.requires_grad_() for name, value in self._values(torch.from_numpy(parameters)).items()}
        losses = self._losses(values, torch.from_numpy(batch.inputs), torch.from_numpy(batch.labels))
        gradients = torch.autograd.grad(losses.sum(), list(values.values()))
        result = np.empty_like(parameters) if out is None else out
        for own, gradient in zip(self._values(torch.from_numpy(result)).values(), gradients, strict=True):
            own.copy_(gradient)
        return StackedGradients(losses.detach().numpy(), result)

    def accuracy(self, parameters: np.ndarray, batch: Batch, reference: Batch | None = None) -> float:
        """See StackedModel."""
        values = {name: value[0] for name, value in self._values(torch.from_numpy(parameters[None])).items()}
        module, inputs = self._module, batch.inputs
        if reference is not None and self._network.normalises:
            module = module_of(evaluated(self._network, len(reference.labels)))
            inputs = np.concatenate([reference.inputs, inputs])
        with torch.inference_mode():
            outputs = _main(functional_call(module, values, (torch.from_numpy(inputs),))).numpy()
        return accuracy_of(outputs[-len(batch.labels) :], batch.labels)

    def _values(self, rows: torch.Tensor) -> Values:
        """Views of rows (k, n): every parameter as (k, *shape)."""
        return {name: rows[:, start:end].unflatten(1, shape) for name, (start, end, shape) in self._places.items()}

    def _loss(self, values: Values, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return loss_of_heads(functional_call(self._module, values, (inputs,)), labels)


def _main(outputs: Any) -> torch.Tensor:
    return outputs[0] if isinstance(outputs, tuple) else outputs
