"""The interface between program train and a framework. Every framework implements it for the same table of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from scaleproof.workloads.data import Batch
from scaleproof.workloads.networks import Network


class GradientPlacement(Protocol):
    """A context manager in which a backward pass allocates its gradients in chosen memory
    (remote/allocation_sites.py)."""

    def begin(self) -> None:
        """Called before each backward pass."""

    def place(self, tensor: Any, memory: Callable[[tuple[int, ...]], np.ndarray]) -> bool:
        """Brings the tensor into the memory. True if it was already allocated there."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: Any) -> object: ...


class Model(Protocol):
    """A network with parameters, loss (softmax cross-entropy, of a regression half the mean squared error) and
    optimiser (SGD with momentum: v = m v + g; p = p - lr v)."""

    def __init__(
        self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int
    ) -> None:
        """`values`: initial values in canonical form, which may be used in place."""

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """Sets the memory of the gradients: flat float32 views in parameter order. They receive the gradient of the
        local mean loss times `scale`. `ready(index)` is called when a gradient is final."""

    def forward(self, batch: Batch) -> float:
        """Mean loss over the batch."""

    def backward(self) -> None:
        """Computes the gradients of the last forward pass into the bound views."""

    def update(self, only: Sequence[int] | None = None) -> None:
        """One optimiser step with the current gradients in the bound views. `only`: indices of the parameters to
        update; None: all."""

    def use_memory(self, memory: Sequence[np.ndarray], placement: GradientPlacement | None = None) -> bool:
        """Moves the parameters into this memory (canonical shapes); from then on writing there changes them. False if
        the framework allocates its own memory; then `load` sets the parameters. With `placement` gradients are
        allocated in their bound views, if the framework can do that."""

    def values(self) -> list[np.ndarray]:
        """Parameters in canonical shape and order (views or copies)."""

    def load(self, values: Sequence[np.ndarray]) -> None:
        """Sets the parameters from canonical values."""

    def flat_values(self) -> list[np.ndarray]:
        """Parameters as flat arrays whose elements are in the order of the gradients' (views or copies): what a server
        holds that applies gradients itself. A framework may keep a kernel in another order than the canonical one."""

    def load_flat(self, values: Sequence[np.ndarray]) -> None:
        """Sets the parameters from flat values in the order of the gradients' elements."""

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """`accuracy_of` the outputs. `reference`: training samples whose mean and variance batch normalisations use,
        computed anew at these parameters; None: those of `batch`."""


class PiecewiseModel(Model, Protocol):
    """A model whose optimiser can update pieces of parameters, for updates that ranks divide."""

    def step_pieces(self, values: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> None:
        """From now on `update` steps these pieces with these gradients. Pieces are flat float32 arrays of the caller,
        each with its own momentum; `only` then selects pieces. The caller copies the pieces back into the
        parameters."""


def accuracy_of(outputs: np.ndarray, labels: np.ndarray) -> float:
    """Share of samples whose largest output is their label. With one output, of a regression: the share of the labels'
    variance that the outputs explain (R^2), at least 0."""
    if outputs.shape[-1] > 1:
        return float((outputs.argmax(axis=-1) == labels).mean())
    left, all_of_it = float(np.square(outputs[..., 0] - labels).mean()), float(labels.var())
    return max(0.0, 1 - left / all_of_it) if all_of_it else 0.0
