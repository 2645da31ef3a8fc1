"""Adam for dense and for sparse gradients, by the kernels of `torch.optim.Adam(fused=True)` and
`torch.optim.SparseAdam`. Their classes import torch._dynamo when they are first used, which takes as long as torch."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import _functional


class Adam:
    """Kingma and Ba (2015), algorithm 1, without weight decay."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.parameters, self.rate, self.betas, self.epsilon = list(parameters), rate, betas, epsilon
        self._means = [torch.zeros_like(each) for each in self.parameters]
        self._squares = [torch.zeros_like(each) for each in self.parameters]
        self._steps = [torch.zeros(()) for _ in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for each in self.parameters:
            each.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step; every parameter has a gradient."""
        gradients = [each.grad for each in self.parameters if each.grad is not None]
        if len(gradients) < len(self.parameters):
            raise ValueError(
                f"{len(self.parameters) - len(gradients)} of {len(self.parameters)} parameters lack a gradient"
            )
        torch._foreach_add_(self._steps, 1)
        self._update(gradients)

    def _update(self, gradients: list[Tensor]) -> None:
        torch._fused_adam_(
            self.parameters,
            gradients,
            self._means,
            self._squares,
            [],
            self._steps,
            lr=self.rate,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=0.0,
            eps=self.epsilon,
            amsgrad=False,
            maximize=False,
        )


class SparseAdam(Adam):
    """The same for sparse gradients: only rows that have one are changed, and their averages."""

    def _update(self, gradients: list[Tensor]) -> None:
        _functional.sparse_adam(
            self.parameters,
            gradients,
            self._means,
            self._squares,
            [int(step) for step in self._steps],
            lr=self.rate,
            beta1=self.betas[0],
            beta2=self.betas[1],
            eps=self.epsilon,
            maximize=False,
        )
