"""The interface of a stacked model: many replicas of one network whose gradients are computed together, for strategies
that run in one process in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from scaleproof.workloads.data import Batch


class StackedGradients(NamedTuple):
    """Of k replicas: the mean loss of each over its own batch, and its gradient."""

    losses: np.ndarray
    """float32 (k,)"""
    gradients: np.ndarray
    """float32 (k, n), elements in the order of the parameters"""


class StackedModel(Protocol):
    """A network without parameters of its own: the caller holds those of all replicas, one row each, all tensors
    flattened in network order (`flat`). It holds no state between calls, so that any rows may come in any order."""

    parameters: int
    """n, the values of one replica"""

    def gradients(
        self, parameters: np.ndarray, batches: Sequence[Batch], out: np.ndarray | None = None
    ) -> StackedGradients:
        """Losses and gradients of k replicas, each of the mean loss over its own batch. `parameters`: float32 (k, n),
        rows contiguous; `batches`: one for each row, all of one size. `out`: memory for the gradients (k, n)."""

    def accuracy(self, parameters: np.ndarray, batch: Batch, reference: Batch | None = None) -> float:
        """Share of samples whose largest output is their label, for one row or an average of rows: float32 (n,).
        `reference` as in Model.accuracy."""


def momentum_step(
    parameters: np.ndarray,
    velocities: np.ndarray,
    gradients: np.ndarray,
    learning_rate: float,
    momentum: float,
    rows: Sequence[int] | None = None,
) -> None:
    """SGD with momentum in place, as Model.update: v = m v + g; p = p - lr v. `rows`: which replicas the gradients
    belong to, each at most once; None: all in order. A row at a time stays in a core's cache, which takes half the
    time."""
    moved = np.empty(parameters.shape[1], np.float32)
    for row, gradient in zip(range(len(parameters)) if rows is None else rows, gradients, strict=True):
        velocity = velocities[row]
        velocity *= np.float32(momentum)
        velocity += gradient
        np.multiply(velocity, np.float32(learning_rate), out=moved)
        parameters[row] -= moved


def flat(values: Sequence[np.ndarray]) -> np.ndarray:
    """The parameters of one replica as one row, from their canonical values."""
    return np.concatenate([np.ascontiguousarray(value, np.float32).reshape(-1) for value in values])


def stacked_inputs(parameters: np.ndarray, batches: Sequence[Batch], width: int) -> Batch:
    """The batches of k replicas as one: inputs (k, samples, ...), labels (k, samples, ...). Raises ValueError for
    parameters or batches that do not fit together."""
    if parameters.ndim != 2 or parameters.shape[1] != width or parameters.dtype != np.float32:
        raise ValueError(f"parameters are {parameters.dtype} {parameters.shape}, must be float32 (replicas, {width})")
    if len(batches) != len(parameters):
        raise ValueError(f"{len(batches)} batches for {len(parameters)} replicas; give one for each")
    if len({len(batch.labels) for batch in batches}) != 1:
        raise ValueError("batches of different sizes cannot be stacked; give one size at a time")
    return Batch(np.stack([batch.inputs for batch in batches]), np.stack([batch.labels for batch in batches]))
