"""Stacked models in NumPy, for chains of fully connected layers: without torch, and with little cost per call, so that
a few rows at a time are cheap too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from scaleproof.workloads.data import Batch
from scaleproof.workloads.layers import Activation, Linear
from scaleproof.workloads.model_contract import accuracy_of
from scaleproof.workloads.networks import INPUT, Network
from scaleproof.workloads.stacked_contract import StackedGradients, stacked_inputs

LEAST_ROWS = 8
"""Rows below which a second thread costs more than it saves."""


@dataclass(frozen=True, slots=True)
class _Nonlinearity:
    """An activation in place, and its derivative as a function of the activated value."""

    apply: Callable[[np.ndarray], object]
    derivative: Callable[[np.ndarray], np.ndarray]


_ACTIVATIONS: dict[Activation, _Nonlinearity] = {
    "tanh": _Nonlinearity(lambda z: np.tanh(z, out=z), lambda y: 1 - y * y),
    "relu": _Nonlinearity(lambda z: np.maximum(z, 0, out=z), lambda y: (y > 0).astype(np.float32)),
    "relu6": _Nonlinearity(lambda z: np.clip(z, 0, 6, out=z), lambda y: ((y > 0) & (y < 6)).astype(np.float32)),
}


@dataclass(frozen=True, slots=True)
class _Dense:
    """Where a layer's weight and bias lie in a row of parameters."""

    outputs: int
    inputs: int
    start: int

    @property
    def end_of_weight(self) -> int:
        """Where its bias starts."""
        return self.start + self.outputs * self.inputs

    def weight(self, rows: np.ndarray) -> np.ndarray:
        """A view (k, outputs, inputs) of rows (k, n)."""
        return rows[:, self.start : self.end_of_weight].reshape(len(rows), self.outputs, self.inputs)

    def bias(self, rows: np.ndarray) -> np.ndarray:
        """A view (k, outputs) of rows (k, n)."""
        return rows[:, self.end_of_weight : self.end_of_weight + self.outputs]


def is_dense(network: Network) -> bool:
    """Whether a network is a chain of fully connected layers on numbers, which DenseReplicas can compute."""
    names = (INPUT, *(layer.name for layer in network.layers))
    chained = all(layer.inputs == (before,) for layer, before in zip(network.layers, names, strict=False))
    linear = all(isinstance(layer.spec, Linear) and not layer.spec.each for layer in network.layers)
    return chained and linear and network.vocabulary is None and network.auxiliary is None


class DenseReplicas:
    """Implements workloads/stacked_contract.py for chains of fully connected layers; a linear model is a chain of
    one."""

    def __init__(self, network: Network, threads: int = 1) -> None:
        if not is_dense(network):
            raise ValueError(f"network {network.name!r} is no chain of fully connected layers")
        self.parameters = network.parameters
        self._layers, start = list[_Dense](), 0
        for layer in network.layers:
            outputs, inputs = layer.weight_shape
            self._layers.append(_Dense(outputs, inputs, start))
            start += outputs * inputs + outputs
        self._nonlinearity, self._threads = _ACTIVATIONS[network.activation], threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._loss = _half_squares if network.regression else _cross_entropy

    def gradients(
        self, parameters: np.ndarray, batches: Sequence[Batch], out: np.ndarray | None = None
    ) -> StackedGradients:
        """See StackedModel."""
        batch = stacked_inputs(parameters, batches, self.parameters)
        count = len(parameters)
        result = StackedGradients(np.empty(count, np.float32), np.empty_like(parameters) if out is None else out)
        inputs = batch.inputs.reshape(*batch.labels.shape, -1)

        def compute(part: slice) -> None:
            result.losses[part] = self._compute(
                parameters[part], inputs[part], batch.labels[part], result.gradients[part]
            )

        if self._pool is None or count < LEAST_ROWS:
            compute(slice(count))
        else:
            edges = np.linspace(0, count, self._threads + 1).astype(int)
            list(self._pool.map(compute, map(slice, edges[:-1], edges[1:])))
        return result

    def accuracy(self, parameters: np.ndarray, batch: Batch, reference: Batch | None = None) -> float:
        """See StackedModel. Nothing is normalised, so that no reference is needed."""
        outputs = self._forward(parameters[None], batch.inputs.reshape(1, len(batch.labels), -1))[-1]
        return accuracy_of(outputs[0], batch.labels)

    def _forward(self, rows: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
        """Inputs of every layer, then the logits: each (k, samples, features)."""
        values = [inputs]
        for layer in self._layers:
            output = np.matmul(values[-1], layer.weight(rows).transpose(0, 2, 1))
            output += layer.bias(rows)[:, None]
            if layer is not self._layers[-1]:
                self._nonlinearity.apply(output)
            values.append(output)
        return values

    def _compute(self, rows: np.ndarray, inputs: np.ndarray, labels: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """Losses of some rows; their gradients are written into `gradients`."""
        values = self._forward(rows, inputs)
        losses, error = self._loss(values.pop(), labels)
        for layer, value in zip(reversed(self._layers), reversed(values), strict=True):
            np.matmul(error.transpose(0, 2, 1), value, out=layer.weight(gradients))
            np.sum(error, axis=1, out=layer.bias(gradients))
            if layer is not self._layers[0]:
                error = np.matmul(error, layer.weight(rows))
                error *= self._nonlinearity.derivative(value)
        return losses


def _cross_entropy(logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean softmax cross-entropy of each replica (k,), and its gradient by the logits, computed in their memory."""
    replicas, samples = np.arange(len(labels))[:, None], np.arange(labels.shape[1])
    logits -= logits.max(axis=-1, keepdims=True)
    chosen = logits[replicas, samples, labels]
    np.exp(logits, out=logits)
    total = logits.sum(axis=-1, keepdims=True)
    losses = (np.log(total[..., 0]) - chosen).mean(axis=1)
    logits /= total
    logits[replicas, samples, labels] -= 1
    logits /= np.float32(labels.shape[1])
    return losses, logits


def _half_squares(outputs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half the mean squared error of each replica (k,), and its gradient by the outputs, computed in their memory."""
    outputs[..., 0] -= labels
    losses = np.einsum("kso,kso->k", outputs, outputs) / np.float32(2 * labels.shape[1])
    outputs /= np.float32(labels.shape[1])
    return losses, outputs
