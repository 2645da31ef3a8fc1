"""Every kind of layer in PyTorch: a module that takes the outputs of the layers it reads. Parameters are registered in
the order of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from scaleproof.frameworks.torch import torch_transformer
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
from scaleproof.workloads.strips import ActivationExchange, ExchangeLayer, Strip
from scaleproof.workloads.transformer_layers import First

_ACTIVATIONS: dict[Activation, Callable[[bool], nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "tanh": lambda in_place: nn.Tanh(),
}


def module(layer: Layer, activation: Activation) -> nn.Module:
    """The layer and its activation, which is computed in place on the layer's output."""
    spec = layer.spec
    if isinstance(spec, Active):
        return _ACTIVATIONS[activation](False)
    made = _MAKE[type(spec)](layer, spec)
    return _Activated(made, _ACTIVATIONS[activation](True)) if activated(spec) else made


class _Activated(nn.Module):
    """A layer of any number of inputs, and its activation in place."""

    def __init__(self, layer: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.layer, self.activation = layer, activation

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.activation(self.layer(*inputs))
        return output


class _Function(nn.Module):
    """A layer without parameters."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


class _Norm(nn.Module):
    """Batch normalisation with the minibatch's statistics, or those of its first samples. It keeps no running averages,
    so it has no buffers."""

    def __init__(self, layer: Layer, spec: Norm) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(layer.input_shape[0])) if spec.scale else None
        self.offset = nn.Parameter(torch.empty(layer.input_shape[0]))
        self.epsilon, self.reference = spec.epsilon, spec.reference

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.reference:
            axes = [axis for axis in range(x.ndim) if axis != 1]
            variance, mean = torch.var_mean(x[: self.reference], axes, correction=0)
            return functional.batch_norm(x, mean, variance, self.scale, self.offset, eps=self.epsilon)
        return functional.batch_norm(x, None, None, self.scale, self.offset, training=True, eps=self.epsilon)


class _Recurrent(nn.Module):
    """LSTM or GRU with three tensors per gate. The inputs of all positions are multiplied in one product per gate."""

    def __init__(self, layer: Layer, spec: Recurrent) -> None:
        super().__init__()
        for variable in layer.variables:
            self.register_parameter(variable.name.replace(".", "_"), nn.Parameter(torch.empty(variable.shape)))
        self.positions, self.every, self.step = layer.input_shape[0], spec.every, _lstm if spec.cell == "lstm" else _gru

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        own = list(self.parameters())
        read = [functional.linear(x, weight, bias) for weight, bias in zip(own[::3], own[2::3], strict=True)]
        state = torch.zeros_like(read[0][:, 0]) if state is None else state
        cell, states = torch.zeros_like(state), []
        for position in range(self.positions):
            state, cell = self.step([gate[:, position] for gate in read], own[1::3], state, cell)
            states.append(state)
        return torch.stack(states, 1) if self.every else states[-1]


def _lstm(
    read: list[torch.Tensor], weights: list[nn.Parameter], state: torch.Tensor, cell: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    enter, forget, new, leave = (
        projected + functional.linear(state, weight) for projected, weight in zip(read, weights, strict=True)
    )
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(cell), cell


def _gru(
    read: list[torch.Tensor], weights: list[nn.Parameter], state: torch.Tensor, cell: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    reset, update = (
        torch.sigmoid(projected + functional.linear(state, weight))
        for projected, weight in zip(read[:2], weights[:2], strict=True)
    )
    new = torch.tanh(read[2] + functional.linear(reset * state, weights[2]))
    return update * state + (1 - update) * new, cell


def _conv(layer: Layer, spec: Conv) -> nn.Module:
    kernel = spec.kernel_on(layer.input_shape)
    features, maps = layer.weight_shape[:2]
    (top, bottom), (left, right) = (
        pads(side, size, spec.stride, spec.pad) for side, size in zip(layer.input_shape[1:], kernel, strict=True)
    )
    padding = (top, left) if (top, left) == (bottom, right) else (0, 0)
    convolution = nn.Conv2d(maps, features, kernel, stride=spec.stride, padding=padding, bias=spec.bias)
    return (
        convolution
        if (top, left) == (bottom, right)
        else nn.Sequential(nn.ZeroPad2d((left, right, top, bottom)), convolution)
    )


def _depthwise(layer: Layer, spec: Depthwise) -> nn.Module:
    maps, before, after = layer.input_shape[0], *pads(layer.input_shape[1], spec.kernel, spec.stride, spec.pad)
    convolution = nn.Conv2d(
        maps, maps, spec.kernel, stride=spec.stride, padding=before if before == after else 0, groups=maps, bias=False
    )
    return convolution if before == after else nn.Sequential(nn.ZeroPad2d((before, after, before, after)), convolution)


def _pool(layer: Layer, spec: Pool) -> nn.Module:
    kernel, stride = spec.window(layer.input_shape)
    before, after = pads(layer.input_shape[1], kernel, stride, spec.pad)
    uneven = after > before  # one pixel more after than before: a last window that hangs over
    if spec.average:
        return nn.AvgPool2d(kernel, stride, before, ceil_mode=uneven, count_include_pad=False)
    return nn.MaxPool2d(kernel, stride, before, ceil_mode=uneven)


def _pick(_: Layer, spec: Pick) -> nn.Module:
    return _Function(lambda x: functional.pad(x, (0, 1, 0, 1))[:, :, 1::2, 1::2] if spec.shift else x[:, :, ::2, ::2])


def _linear(layer: Layer, spec: Linear) -> nn.Module:
    features, fan_in = layer.weight_shape
    linear = nn.Linear(fan_in, features)
    return nn.Sequential(nn.Flatten(), linear) if len(layer.input_shape) > 1 and not spec.each else linear


def _embedding(vocabulary: int, width: int) -> nn.Module:
    """With its own initial values torch, on device meta, would import its compiler: 1 s on every rank."""
    return nn.Embedding.from_pretrained(torch.empty(vocabulary, width), freeze=False)


class _ExchangeFunction(torch.autograd.Function):
    """Exchanges activations with other ranks, as NumPy arrays outside of torch."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, exchange: ActivationExchange) -> torch.Tensor:
        ctx.exchange = exchange
        return torch.from_numpy(exchange.forward(x.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return torch.from_numpy(ctx.exchange.backward(gradients[0].numpy())), None


def _exchange(_: Layer, spec: ExchangeLayer) -> nn.Module:
    return nn.Sequential(nn.Flatten(), _Function(lambda x: _ExchangeFunction.apply(x, spec.exchange)))


def _mean(layer: Layer, _: Mean) -> nn.Module:
    axes = (2, 3) if len(layer.input_shape) == 3 else (1,)
    return _Function(lambda x: x.mean(axes))


def _add(first: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    for other in others:
        first = first + other
    return first


_MAKE: dict[type, Callable[[Layer, Any], nn.Module]] = {
    Conv: _conv,
    Depthwise: _depthwise,
    Norm: _Norm,
    Pool: _pool,
    Pick: _pick,
    Mean: _mean,
    Linear: _linear,
    Strip: _linear,
    Recurrent: _Recurrent,
    ExchangeLayer: _exchange,
    Add: lambda layer, spec: _Function(_add),
    Concat: lambda layer, spec: _Function(lambda *inputs: torch.cat(inputs, 1)),
    Embedding: lambda layer, spec: _embedding(spec.vocabulary, layer.output_shape[-1]),
    Positions: lambda layer, spec: _Function(lambda x: x[:, spec.start : spec.stop]),
    First: lambda layer, spec: _Function(lambda x: x[:, 0]),
    **torch_transformer.MAKE,
}
