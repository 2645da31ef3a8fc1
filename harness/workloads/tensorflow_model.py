"""A network in TensorFlow 2, compiled by tf.function (no XLA), float32, CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from harness.workloads.data import Batch
from harness.workloads.networks import Conv, Layer, Network, Pool

_TO_TF, _TO_CANONICAL = (2, 3, 1, 0), (3, 2, 0, 1)
"""Kernels are (k, k, in, out) in TensorFlow. Images are (side, side, maps), the only layout whose convolutions run on a CPU."""


class TensorflowModel:
    """Implements workloads/model.py. The backward pass is one compiled call: all its gradients become ready together, after it."""

    def __init__(self, network: Network, values: Sequence[np.ndarray], *, learning_rate: float, momentum: float, threads: int) -> None:
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
        self._gradients = [gradient.reshape(variable.shape) for gradient, variable in zip(gradients, self._variables, strict=True)]
        self._scale, self._ready = tf.constant(scale, tf.float32), ready

    def forward(self, batch: Batch) -> float:
        """See Model. The tape splits the compiled function into a forward and a backward one."""
        with tf.GradientTape(watch_accessed_variables=False) as self._tape:
            self._tape.watch(self._variables)
            self._loss = self._loss_function(batch.inputs, batch.labels)
        return float(self._loss)

    def backward(self) -> None:
        """See Model. Copies each gradient once, out of the memory that TensorFlow chose."""
        found = self._tape.gradient(self._loss, self._variables, output_gradients=self._scale)
        for index in reversed(range(len(found))):
            np.copyto(self._gradients[index], found[index].numpy())
            self._ready(index)
        del self._tape

    def update(self) -> None:
        """See Model."""
        self._update_function([tf.convert_to_tensor(gradient) for gradient in self._gradients])

    def values(self) -> list[np.ndarray]:
        """Copies in canonical shape."""
        return [_to_canonical(variable.numpy()) for variable in self._variables]

    def load(self, values: Sequence[np.ndarray]) -> None:
        """See Model."""
        for variable, value in zip(self._variables, values, strict=True):
            variable.assign(_from_canonical(value))

    def accuracy(self, batch: Batch) -> float:
        """See Model."""
        found = self._outputs_function(batch.inputs).numpy().argmax(axis=1)
        return float((found == batch.labels).mean())

    def _loss_of(self, inputs: Any, labels: Any) -> Any:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=self._outputs_of(inputs))
        return tf.reduce_mean(losses)

    def _update(self, gradients: list[Any]) -> None:
        for variable, velocity, gradient in zip(self._variables, self._velocities, gradients, strict=True):
            tf.raw_ops.ResourceApplyMomentum(var=variable.handle, accum=velocity.handle, lr=self._learning_rate, grad=gradient, momentum=self._momentum)

    def _outputs_of(self, inputs: Any) -> Any:
        return outputs(self._network, inputs, self._variables)


def outputs(network: Network, inputs: Any, values: Sequence[Any]) -> Any:
    """Logits (n, classes) of inputs (n, *input_shape) under parameters in network order, kernels as (k, k, in, out)."""
    left = iter(values)
    x = tf.transpose(inputs, (0, 2, 3, 1)) if len(network.input_shape) > 1 else inputs
    for layer in network.layers:
        x = _apply(layer, x, left, tf.nn.relu if network.activation == "relu" else tf.tanh)
    return x


def _apply(layer: Layer, x: Any, values: Iterator[Any], active: Callable[[Any], Any]) -> Any:
    spec = layer.spec
    if isinstance(spec, Pool):
        return (tf.nn.avg_pool2d if spec.average else tf.nn.max_pool2d)(x, spec.kernel, spec.kernel, "VALID")
    weight, bias = next(values), next(values)
    if isinstance(spec, Conv):
        pad = [[0, 0], [spec.pad, spec.pad], [spec.pad, spec.pad], [0, 0]]
        return active(tf.nn.bias_add(tf.nn.conv2d(x, weight, spec.stride, pad), bias))
    if len(layer.input_shape) > 1:  # flattened as (maps, side, side), so that weights mean the same in every framework
        x = tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (-1, layer.weight_shape[1]))
    x = tf.nn.bias_add(tf.matmul(x, weight, transpose_b=True), bias)
    return x if spec.classifier else active(x)


def _from_canonical(value: np.ndarray) -> np.ndarray:
    return value.transpose(_TO_TF) if value.ndim == 4 else value


def _to_canonical(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value.transpose(_TO_CANONICAL)) if value.ndim == 4 else value
