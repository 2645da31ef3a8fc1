"""The contract of a model: what program train needs of a framework. One file per framework implements it, from the same
layer table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from scaleproof.workloads.data import Batch
from scaleproof.workloads.networks import Network


class GradientPlacement(Protocol):
    """Makes a backward pass allocate its gradients in chosen memory (remote/allocation_sites.py): a context around its
    operations."""

    def begin(self) -> None:
        """A new pass starts."""

    def place(self, tensor: Any, memory: Callable[[tuple[int, ...]], np.ndarray]) -> bool:
        """The tensor is in the memory afterwards; True where it was allocated there."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: Any) -> object: ...


class Model(Protocol):
    """A network with parameters, loss (softmax cross-entropy) and optimiser (SGD with momentum: v = m v + g; p = p - lr
    v)."""

    def __init__(
        self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int
    ) -> None:
        """With canonical initial values, which may be used in place."""

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """The memory of the gradients: flat float32 views in parameter order, of the local mean loss times `scale`;
        `ready(index)` is called as each is final."""

    def forward(self, batch: Batch) -> float:
        """Mean loss over the batch."""

    def backward(self) -> None:
        """Gradients of the last forward pass, written to the bound views."""

    def update(self, only: Sequence[int] | None = None) -> None:
        """One optimiser step with the gradients as they now are in the bound views; of these parameters only, where
        some are given."""

    def use_memory(self, memory: Sequence[np.ndarray], placement: GradientPlacement | None = None) -> bool:
        """Keep the parameters in this memory from now on (canonical shapes), with their values: writing there changes
        them. False where the framework has memory of its own; then `load` sets them. With `placement` the bound
        gradients are allocated in their views too, where the framework can."""

    def values(self) -> list[np.ndarray]:
        """Parameters in canonical shape and order (views or copies)."""

    def load(self, values: Sequence[np.ndarray]) -> None:
        """Set the parameters from canonical values."""

    def accuracy(self, batch: Batch) -> float:
        """Share of the batch whose largest output is its label."""


class PiecewiseModel(Model, Protocol):
    """A model whose optimiser can step pieces of parameters, for updates that ranks share."""

    def step_pieces(self, values: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> None:
        """From now on `update` steps these pieces, flat float32 arrays of the caller's, each with a momentum of its
        own, with these gradients; `only` counts pieces. What the parameters themselves are is left to who brings the
        pieces back to them."""
