"""Layers of transformers (Vaswani et al. 2017), whose shapes are (positions, features)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from scaleproof.workloads.layers import LayerSpec, Resolved, Shape, Variable

PROJECTIONS = ("query", "key", "value", "output")
"""Of attention, in the order of its variables."""


def _dense(name: str, features: int, fan_in: int) -> tuple[Variable, Variable]:
    """Weight and bias of a product at each position."""
    return Variable(f"{name}weight", (features, fan_in), "normal", fan_in), Variable(
        f"{name}bias", (features,), "zeros"
    )


@dataclass(frozen=True, slots=True)
class LearnedPositions(LayerSpec):
    """Adds a trained vector for each position, of which the table has `positions`; with `types` that of the first type
    of token too."""

    positions: int
    types: int = 0

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        if shape[0] > self.positions:
            raise ValueError(f"layer {self.name!r} has vectors for {self.positions} positions, not {shape[0]}")
        tables = [Variable("positions", (self.positions, shape[1]), "normal", shape[1])]
        tables += [Variable("types", (self.types, shape[1]), "normal", shape[1])] if self.types else []
        return Resolved(shape, tuple(tables))


@dataclass(frozen=True, slots=True)
class LayerNorm(LayerSpec):
    """Normalises the features of each position, with a scale and an offset."""

    epsilon: float = 1e-5

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        return Resolved(shape, (Variable("scale", shape[-1:], "ones"), Variable("offset", shape[-1:], "zeros")))


@dataclass(frozen=True, slots=True)
class Attention(LayerSpec):
    """Self-attention of several heads; with `causal` a position sees itself and those before it. Products of positions
    with positions count in full."""

    heads: int
    causal: bool = False

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        ((positions, features),) = shapes
        if features % self.heads:
            raise ValueError(f"layer {self.name!r}: {features} features do not divide over {self.heads} heads")
        variables = [each for name in PROJECTIONS for each in _dense(f"{name}.", features, features)]
        products = 4 * positions * features**2
        return Resolved((positions, features), tuple(variables), products + 2 * positions**2 * features)


@dataclass(frozen=True, slots=True)
class FeedForward(LayerSpec):
    """Two products at each position with GELU in between, the first one to `factor` times the features."""

    factor: int = 4

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        ((positions, features),) = shapes
        inner = self.factor * features
        variables = (*_dense("expand.", inner, features), *_dense("contract.", features, inner))
        return Resolved((positions, features), variables, 2 * positions * inner * features)


@dataclass(frozen=True, slots=True)
class Transform(LayerSpec):
    """A product, at each position of a sequence, that keeps the features, with an activation of its own."""

    activation: Literal["gelu", "tanh"]

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        return Resolved(shape, _dense("", shape[-1], shape[-1]), prod(shape) * shape[-1])


@dataclass(frozen=True, slots=True)
class First(LayerSpec):
    """The features of the first position."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        return Resolved(shapes[0][1:])


@dataclass(frozen=True, slots=True)
class Unembedding(LayerSpec):
    """Logits of each token of the vocabulary at each position, without bias."""

    vocabulary: int

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        ((positions, features),) = shapes
        weight = Variable("weight", (self.vocabulary, features), "normal", features)
        return Resolved((positions, self.vocabulary), (weight,), positions * weight.elements)


TRANSFORMER = (LearnedPositions, LayerNorm, Attention, FeedForward, Transform, Unembedding)
"""Kinds of layers whose weights begin with variance 1 / fan-in."""
