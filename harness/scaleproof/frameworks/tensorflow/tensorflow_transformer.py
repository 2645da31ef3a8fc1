"""Layers of transformers in TensorFlow, as functions of their inputs and variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from scaleproof.workloads.networks import Layer
from scaleproof.workloads.transformer_layers import (
    Attention,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Transform,
    Unembedding,
)


def _dense(x: Any, weight: Any, bias: Any) -> Any:
    return tf.nn.bias_add(tf.linalg.matmul(x, weight, transpose_b=True), bias)


def _positions(layer: Layer, spec: LearnedPositions, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    added = inputs[0] + values[0][: layer.input_shape[0]]
    return added + values[1][0] if spec.types else added


def _norm(_: Layer, spec: LayerNorm, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    mean, variance = tf.nn.moments(inputs[0], -1, keepdims=True)
    return tf.nn.batch_normalization(inputs[0], mean, variance, values[1], values[0], spec.epsilon)


def _attention(layer: Layer, spec: Attention, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    positions, features = layer.input_shape
    x = inputs[0]

    def heads(number: int) -> Any:
        projected = _dense(x, values[2 * number], values[2 * number + 1])
        divided = tf.reshape(projected, (-1, positions, spec.heads, features // spec.heads))
        return tf.transpose(divided, (0, 2, 1, 3))

    scores = tf.linalg.matmul(heads(0), heads(1), transpose_b=True) / (features // spec.heads) ** 0.5
    if spec.causal:
        seen = tf.linalg.band_part(tf.ones((positions, positions), tf.bool), -1, 0)
        scores = tf.where(seen, scores, tf.constant(float("-inf"), scores.dtype))
    mixed = tf.linalg.matmul(tf.nn.softmax(scores), heads(2))
    joined = tf.reshape(tf.transpose(mixed, (0, 2, 1, 3)), (-1, positions, features))
    return _dense(joined, values[6], values[7])


def _feed_forward(_: Layer, __: FeedForward, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    return _dense(tf.nn.gelu(_dense(inputs[0], values[0], values[1])), values[2], values[3])


def _transform(_: Layer, spec: Transform, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    output = _dense(inputs[0], values[0], values[1])
    return tf.nn.gelu(output) if spec.activation == "gelu" else tf.tanh(output)


def _unembedding(_: Layer, __: Unembedding, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    return tf.linalg.matmul(inputs[0], values[0], transpose_b=True)


APPLY: dict[type, Callable[[Layer, Any, Sequence[Any], Sequence[Any]], Any]] = {
    LearnedPositions: _positions,
    LayerNorm: _norm,
    Attention: _attention,
    FeedForward: _feed_forward,
    Transform: _transform,
    Unembedding: _unembedding,
}
