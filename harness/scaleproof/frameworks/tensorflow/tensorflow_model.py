"""A network in TensorFlow 2, compiled by tf.function (no XLA), float32, CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from scaleproof.frameworks.tensorflow import tensorflow_layers
from scaleproof.workloads.data import Batch
from scaleproof.workloads.model_contract import GradientPlacement, accuracy_of
from scaleproof.workloads.networks import AUXILIARY_WEIGHT, Network, evaluated

_TO_TF, _TO_CANONICAL = (2, 3, 1, 0), (3, 2, 0, 1)
"""Kernels are (k, k, in, out) in TensorFlow."""


class TensorflowModel:
    """Implements workloads/model_contract.py. The backward pass is one compiled call, so that all gradients become
    ready at its end."""

    def __init__(
        self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int
    ) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self._network = network
        self._variables = [tf.Variable(_from_canonical(value)) for value in values]
        self._velocities = [tf.Variable(tf.zeros_like(variable)) for variable in self._variables]
        self._learning_rate, self._momentum = learning_rate, momentum
        self._loss_function = tf.function(self._loss_of)
        self._update_function = tf.function(self._update)
        self._outputs_function = tf.function(self._outputs_of)
        self._gradients: list[np.ndarray] = []
        self._scale = tf.constant(1.0)

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """See Model."""
        self._gradients = [
            gradient.reshape(variable.shape) for gradient, variable in zip(gradients, self._variables, strict=True)
        ]
        self._scale, self._ready = tf.constant(scale, tf.float32), ready

    def forward(self, batch: Batch) -> float:
        """See Model. The tape splits the compiled function into a forward and a backward one."""
        with tf.GradientTape(watch_accessed_variables=False) as self._tape:
            self._tape.watch(self._variables)
            self._loss = self._loss_function(batch.inputs, batch.labels)
        return float(self._loss)

    def backward(self) -> None:
        """See Model. Copies each gradient once from TensorFlow's memory."""
        gradients = self._tape.gradient(self._loss, self._variables, output_gradients=self._scale)
        for index in reversed(range(len(gradients))):
            np.copyto(
                self._gradients[index], tf.convert_to_tensor(gradients[index]).numpy()
            )  # dense, also of an embedding
            self._ready(index)
        del self._tape

    def update(self, only: Sequence[int] | None = None) -> None:
        """See Model. Compiled once for each choice of parameters."""
        chosen = tuple(range(len(self._variables)) if only is None else only)
        self._update_function([tf.convert_to_tensor(self._gradients[index]) for index in chosen], chosen)

    def use_memory(self, memory: Sequence[np.ndarray], placement: GradientPlacement | None = None) -> bool:
        """See Model. TensorFlow allocates the memory of its variables itself."""
        return False

    def values(self) -> list[np.ndarray]:
        """Copies in canonical shape."""
        return [_to_canonical(variable.numpy()) for variable in self._variables]

    def load(self, values: Sequence[np.ndarray]) -> None:
        """See Model."""
        for variable, value in zip(self._variables, values, strict=True):
            variable.assign(_from_canonical(value))

    def flat_values(self) -> list[np.ndarray]:
        """See Model; copies."""
        return [variable.numpy().reshape(-1) for variable in self._variables]

    def load_flat(self, values: Sequence[np.ndarray]) -> None:
        """See Model."""
        for variable, value in zip(self._variables, values, strict=True):
            variable.assign(value.reshape(variable.shape))

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Model."""
        inputs, count = batch.inputs, 0
        if reference is not None and self._network.normalises:
            inputs, count = np.concatenate([reference.inputs, inputs]), len(reference.labels)
        return accuracy_of(self._outputs_function(inputs, count).numpy()[count:], batch.labels)

    def _loss_of(self, inputs: Any, labels: Any) -> Any:
        return loss(self._network, inputs, labels, self._variables)

    def _update(self, gradients: list[Any], chosen: tuple[int, ...]) -> None:
        for index, gradient in zip(chosen, gradients, strict=True):
            variable, velocity = self._variables[index], self._velocities[index]
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle,
                accum=velocity.handle,
                lr=self._learning_rate,
                grad=gradient,
                momentum=self._momentum,
            )

    def _outputs_of(self, inputs: Any, reference: int) -> Any:
        network = evaluated(self._network, reference) if reference else self._network
        return outputs(network, inputs, self._variables)


def logits(network: Network, inputs: Any, values: Sequence[Any]) -> list[Any]:
    """Logits of every head for inputs (n, *input_shape). Parameters are in network order, kernels as (k, k, in,
    out)."""
    remaining_values = iter(values)
    outputs = [tf.transpose(inputs, (0, 2, 3, 1)) if len(network.input_shape) == 3 else inputs]
    for layer, indices in zip(network.layers, network.input_indices, strict=True):
        own = list(islice(remaining_values, len(layer.variables)))
        outputs.append(tensorflow_layers.apply(layer, network.activation, [outputs[index] for index in indices], own))
    return [outputs[head + 1] for head in network.heads]


def outputs(network: Network, inputs: Any, values: Sequence[Any]) -> Any:
    """Logits (n, classes) of the main head, or (n, positions, classes) with a label at every position."""
    return logits(network, inputs, values)[0]


def loss(network: Network, inputs: Any, labels: Any, values: Sequence[Any]) -> Any:
    """Mean softmax cross-entropy over samples (and positions), plus the weighted loss of an auxiliary head; of a
    regression half the mean squared error."""
    heads = logits(network, inputs, values)
    main, *auxiliary = (_loss_of_head(labels, head) for head in heads)
    return main + AUXILIARY_WEIGHT * auxiliary[0] if auxiliary else main


def _loss_of_head(labels: Any, head: Any) -> Any:
    if len(head.shape) - 1 < len(labels.shape):  # one prediction for all positions of a sample
        labels = labels[..., 0] % head.shape[-1]
    if head.shape[-1] == 1:
        return tf.reduce_mean(tf.square(tf.squeeze(head, -1) - tf.cast(labels, head.dtype))) / 2
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=head))


def _from_canonical(value: np.ndarray) -> np.ndarray:
    return value.transpose(_TO_TF) if value.ndim == 4 else value


def _to_canonical(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value.transpose(_TO_CANONICAL)) if value.ndim == 4 else value
