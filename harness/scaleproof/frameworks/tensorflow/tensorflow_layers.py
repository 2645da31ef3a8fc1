"""Every kind of layer in TensorFlow, as a function of its inputs and its variables. Images are (side, side, maps), the
only layout whose convolutions run on a CPU; kernels are (k, k, in, out)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from scaleproof.frameworks.tensorflow import tensorflow_transformer
from scaleproof.workloads.layers import (
    Activation,
    Active,
    Add,
    Concat,
    Conv,
    Depthwise,
    Linear,
    Mean,
    Norm,
    Pick,
    Pool,
    activated,
    pads,
)
from scaleproof.workloads.networks import Layer
from scaleproof.workloads.sequence_layers import Embedding, Positions, Recurrent
from scaleproof.workloads.transformer_layers import First

_ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {"relu": tf.nn.relu, "relu6": tf.nn.relu6, "tanh": tf.tanh}


def apply(layer: Layer, activation: Activation, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    """The layer with its activation."""
    spec = layer.spec
    output = _APPLY[type(spec)](layer, spec, inputs, values)
    return _ACTIVATIONS[activation](output) if activated(spec) else output


def _padding(layer: Layer, kernel: tuple[int, int], stride: int, pad: Any) -> list[list[int]]:
    return [
        [0, 0],
        *(list(pads(side, size, stride, pad)) for side, size in zip(layer.input_shape[1:], kernel, strict=True)),
        [0, 0],
    ]


def _conv(layer: Layer, spec: Conv, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    padding = _padding(layer, spec.kernel_on(layer.input_shape), spec.stride, spec.pad)
    output = tf.nn.conv2d(inputs[0], values[0], spec.stride, padding)
    return tf.nn.bias_add(output, values[1]) if spec.bias else output


def _depthwise(layer: Layer, spec: Depthwise, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    kernels = tf.reshape(values[0], (spec.kernel, spec.kernel, layer.input_shape[0], 1))
    padding = _padding(layer, (spec.kernel, spec.kernel), spec.stride, spec.pad)
    return tf.nn.depthwise_conv2d(inputs[0], kernels, (1, spec.stride, spec.stride, 1), padding)


def _norm(layer: Layer, spec: Norm, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    scale = values[0] if spec.scale else tf.ones(layer.input_shape[0])
    if spec.reference:
        mean, variance = tf.nn.moments(inputs[0][: spec.reference], (0, 1, 2))
        return tf.nn.batch_normalization(inputs[0], mean, variance, values[-1], scale, spec.epsilon)
    return tf.compat.v1.nn.fused_batch_norm(inputs[0], scale, values[-1], epsilon=spec.epsilon, is_training=True)[0]


def _pool(layer: Layer, spec: Pool, inputs: Sequence[Any], _: Sequence[Any]) -> Any:
    kernel, stride = spec.window(layer.input_shape)
    if spec.average:
        return tf.nn.avg_pool2d(inputs[0], kernel, stride, "SAME" if spec.pad == "same" else "VALID")
    return tf.nn.max_pool2d(inputs[0], kernel, stride, _padding(layer, (kernel, kernel), stride, spec.pad))


def _pick(_: Layer, spec: Pick, inputs: Sequence[Any], __: Sequence[Any]) -> Any:
    x = inputs[0]
    return tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]])[:, 1::2, 1::2] if spec.shift else x[:, ::2, ::2]


def _mean(layer: Layer, _: Mean, inputs: Sequence[Any], __: Sequence[Any]) -> Any:
    return tf.reduce_mean(inputs[0], (1, 2) if len(layer.input_shape) == 3 else 1)


def _linear(layer: Layer, spec: Linear, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    x = inputs[0]
    if len(layer.input_shape) == 3:  # flattened as (maps, side, side), so that weights mean the same in every framework
        x = tf.transpose(x, (0, 3, 1, 2))
    if len(layer.input_shape) > 1:
        x = tf.reshape(x, (-1, layer.weight_shape[1]))
    output = tf.nn.bias_add(tf.matmul(x, values[0], transpose_b=True), values[1])
    return tf.reshape(output, (-1, *layer.output_shape)) if spec.each else output


def _recurrent(layer: Layer, spec: Recurrent, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    positions, features = layer.input_shape
    flat = tf.reshape(inputs[0], (-1, features))
    weights, biases, recurrent = values[::3], values[2::3], values[1::3]
    read = [
        tf.unstack(tf.reshape(_product(flat, weight, bias), (-1, positions, weight.shape[0])), axis=1)
        for weight, bias in zip(weights, biases, strict=True)
    ]
    state = inputs[1] if len(inputs) > 1 else tf.zeros_like(read[0][0])
    cell, states = tf.zeros_like(state), []
    for position in range(positions):
        state, cell = (_lstm if spec.cell == "lstm" else _gru)(
            [gate[position] for gate in read], recurrent, state, cell
        )
        states.append(state)
    return tf.stack(states, 1) if spec.every else state


def _product(x: Any, weight: Any, bias: Any) -> Any:
    return tf.nn.bias_add(tf.matmul(x, weight, transpose_b=True), bias)


def _lstm(read: Sequence[Any], weights: Sequence[Any], state: Any, cell: Any) -> tuple[Any, Any]:
    enter, forget, new, leave = (
        projected + tf.matmul(state, weight, transpose_b=True) for projected, weight in zip(read, weights, strict=True)
    )
    cell = tf.sigmoid(forget) * cell + tf.sigmoid(enter) * tf.tanh(new)
    return tf.sigmoid(leave) * tf.tanh(cell), cell


def _gru(read: Sequence[Any], weights: Sequence[Any], state: Any, cell: Any) -> tuple[Any, Any]:
    reset, update = (
        tf.sigmoid(projected + tf.matmul(state, weight, transpose_b=True))
        for projected, weight in zip(read[:2], weights[:2], strict=True)
    )
    new = tf.tanh(read[2] + tf.matmul(reset * state, weights[2], transpose_b=True))
    return update * state + (1 - update) * new, cell


_APPLY: dict[type, Callable[[Layer, Any, Sequence[Any], Sequence[Any]], Any]] = {
    Conv: _conv,
    Depthwise: _depthwise,
    Norm: _norm,
    Pool: _pool,
    Pick: _pick,
    Mean: _mean,
    Linear: _linear,
    Recurrent: _recurrent,
    Active: lambda layer, spec, inputs, values: inputs[0],
    Add: lambda layer, spec, inputs, values: tf.add_n(list(inputs)),
    Concat: lambda layer, spec, inputs, values: tf.concat(list(inputs), -1),
    Embedding: lambda layer, spec, inputs, values: tf.gather(values[0], inputs[0]),
    Positions: lambda layer, spec, inputs, values: inputs[0][:, spec.start : spec.stop],
    First: lambda layer, spec, inputs, values: inputs[0][:, 0],
    **tensorflow_transformer.APPLY,
}
