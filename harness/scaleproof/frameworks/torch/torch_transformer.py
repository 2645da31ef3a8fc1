"""Layers of transformers in PyTorch. Parameters are registered in the order of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from scaleproof.workloads.networks import Layer
from scaleproof.workloads.transformer_layers import (
    PROJECTIONS,
    Attention,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Transform,
    Unembedding,
)


class _Positions(nn.Module):
    """Adds the vectors of positions, and of the first type of token."""

    def __init__(self, layer: Layer, spec: LearnedPositions) -> None:
        super().__init__()
        for variable in layer.variables:
            self.register_parameter(variable.name, nn.Parameter(torch.empty(variable.shape)))
        self.count, self.typed = layer.input_shape[0], bool(spec.types)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions, *types = self.parameters()
        added = x + positions[: self.count]
        return added + types[0][0] if self.typed else added


class _Attention(nn.Module):
    """Attention by plain products, so that torch's count of FLOP sees them."""

    def __init__(self, layer: Layer, spec: Attention) -> None:
        super().__init__()
        features = layer.input_shape[1]
        for name in PROJECTIONS:
            self.add_module(name, nn.Linear(features, features))
        self.heads, self.causal = spec.heads, spec.causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value, output = self.children()
        count, positions, features = x.shape

        def heads(projected: torch.Tensor) -> torch.Tensor:
            return projected.view(count, positions, self.heads, -1).transpose(1, 2)

        scores = heads(query(x)) @ heads(key(x)).transpose(2, 3) / (features // self.heads) ** 0.5
        if self.causal:
            later = torch.ones(positions, positions, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        mixed = scores.softmax(-1) @ heads(value(x))
        result: torch.Tensor = output(mixed.transpose(1, 2).reshape(count, positions, features))
        return result


class _FeedForward(nn.Module):
    def __init__(self, layer: Layer, spec: FeedForward) -> None:
        super().__init__()
        features = layer.input_shape[1]
        self.expand = nn.Linear(features, spec.factor * features)
        self.contract = nn.Linear(spec.factor * features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.contract(functional.gelu(self.expand(x)))
        return result


def _transform(layer: Layer, spec: Transform) -> nn.Module:
    features = layer.input_shape[-1]
    return nn.Sequential(nn.Linear(features, features), nn.GELU() if spec.activation == "gelu" else nn.Tanh())


MAKE: dict[type, Callable[[Layer, Any], nn.Module]] = {
    LearnedPositions: _Positions,
    LayerNorm: lambda layer, spec: nn.LayerNorm(layer.input_shape[-1], spec.epsilon),
    Attention: _Attention,
    FeedForward: _FeedForward,
    Transform: _transform,
    Unembedding: lambda layer, spec: nn.Linear(layer.input_shape[-1], spec.vocabulary, bias=False),
}
