"""Layers as data: how a table describes each layer, and the sizes it resolves to. Shapes are per sample: (maps, side,
side), (positions, features), (features,). Layers of sequences are in sequence_layers.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple, TypeAlias

BLOCK = 8
"""Reduced feature counts are multiples of this: the SIMD block of the layouts that CPU libraries use."""
Shape: TypeAlias = tuple[int, ...]
Activation = Literal["relu", "relu6", "tanh"]
Initial = Literal["normal", "zeros", "ones"]
Pad = int | Literal["same"]
"""Pixels on every side, or `same`: as many pixels as give an output of ceil(side / stride), the larger half at the end
(TensorFlow's SAME)."""


class Variable(NamedTuple):
    """One trained tensor of a layer; frameworks call it a variable or a parameter."""

    name: str
    shape: Shape
    """(out, in, k, k) or (out, in); a vector for biases, scales and offsets."""
    initial: Initial
    fan_in: int = 1

    @property
    def elements(self) -> int:
        """Number of values."""
        return prod(self.shape)


class Resolved(NamedTuple):
    """Sizes of a layer whose inputs have known shapes."""

    output_shape: Shape
    variables: tuple[Variable, ...] = ()
    mac: int = 0
    """Multiply-accumulates per sample of the forward pass, without biases, normalisation, pooling, sums and
    activations."""
    input_mac: int | None = None
    """Part of `mac` that the gradient of the layer's input takes; None: all."""


@dataclass(frozen=True, slots=True)
class LayerSpec(ABC):
    """A layer as a paper describes it. `inputs`: names of the layers it reads (`input`: the network's input); empty:
    the previous layer."""

    name: str
    inputs: tuple[str, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """Sizes for inputs of these shapes. A side below 1 means that no pixels are left."""


def reduced(features: int, width: float) -> int:
    """Hidden features under a width factor: the nearest multiple of 8 (ties up), at least 8; exact at 1.0."""
    return features if width == 1.0 else max(BLOCK, int(features * width / BLOCK + 0.5) * BLOCK)


def pads(side: int, kernel: int, stride: int, pad: Pad) -> tuple[int, int]:
    """Pixels added before and after one side."""
    if pad != "same":
        return pad, pad
    total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    return total // 2, total - total // 2


def _swept(side: int, kernel: int, stride: int, pad: Pad) -> int:
    """Positions of a kernel along a side; 0 if the stride is larger than the side."""
    if side < stride and pad == "same":
        return 0
    return (side + sum(pads(side, kernel, stride, pad)) - kernel) // stride + 1


@dataclass(frozen=True, slots=True)
class Conv(LayerSpec):
    """Convolution with an activation unless it is not `active`; `kernel` is a side or (height, width)."""

    features: int
    kernel: int | tuple[int, int]
    stride: int = 1
    pad: Pad = 0
    bias: bool = True
    active: bool = True
    fit: bool = False
    """Whether the kernel is cut to the size of the image."""

    def kernel_on(self, shape: Shape) -> tuple[int, int]:
        """Height and width on an input of this shape."""
        high, wide = (self.kernel, self.kernel) if isinstance(self.kernel, int) else self.kernel
        return (min(high, shape[1]), min(wide, shape[2])) if self.fit else (high, wide)

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        high, wide = self.kernel_on(shape)
        features = reduced(self.features, width)
        output = (
            features,
            _swept(shape[1], high, self.stride, self.pad),
            _swept(shape[2], wide, self.stride, self.pad),
        )
        weight = Variable("weight", (features, shape[0], high, wide), "normal", shape[0] * high * wide)
        biases = (Variable("bias", (features,), "zeros"),) if self.bias else ()
        return Resolved(output, (weight, *biases), weight.elements * output[1] * output[2])


@dataclass(frozen=True, slots=True)
class Depthwise(LayerSpec):
    """Convolution of each map with a separate kernel, without bias or activation."""

    kernel: int
    stride: int = 1
    pad: Pad = "same"

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        output = (shape[0], *(_swept(side, self.kernel, self.stride, self.pad) for side in shape[1:]))
        weight = Variable("weight", (shape[0], 1, self.kernel, self.kernel), "normal", self.kernel**2)
        return Resolved(output, (weight,), weight.elements * output[1] * output[2])


@dataclass(frozen=True, slots=True)
class Norm(LayerSpec):
    """Batch normalisation with the mean and variance of the rank's own samples, then an activation if `active`."""

    scale: bool = True
    active: bool = True
    epsilon: float = 1e-3
    reference: int = 0
    """Mean and variance are those of so many first samples of a pass; 0: of all (networks.py, `evaluated`)."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        scales = (Variable("scale", (shape[0],), "ones"),) if self.scale else ()
        return Resolved(shape, (*scales, Variable("offset", (shape[0],), "zeros")))


@dataclass(frozen=True, slots=True)
class Pool(LayerSpec):
    """Maximum pooling, or average pooling (padded `same` or not at all; padding does not count). `stride` 0: same as
    the kernel. A remainder of the side is cut off."""

    kernel: int = 2
    average: bool = False
    stride: int = 0
    pad: Pad = 0
    fit: bool = False
    """Whether the kernel is cut to the size of the image."""

    def window(self, shape: Shape) -> tuple[int, int]:
        """Kernel and stride on an input of this shape."""
        return min(self.kernel, *shape[1:]) if self.fit else self.kernel, self.stride or self.kernel

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        if self.average and self.pad not in (0, "same"):
            raise ValueError(f"layer {self.name!r} cannot pad an average by {self.pad}")
        return Resolved((shape[0], *(_swept(side, *self.window(shape), self.pad) for side in shape[1:])))


@dataclass(frozen=True, slots=True)
class Pick(LayerSpec):
    """Every second pixel in both directions, starting at the first pixel, or with `shift` at the second (zeros follow
    the last)."""

    shift: bool

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        return Resolved((shape[0], *(_swept(side, 1, 2, "same") for side in shape[1:])))


@dataclass(frozen=True, slots=True)
class Mean(LayerSpec):
    """Average over all pixels of each map, or over all positions of a sequence."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        return Resolved((shape[0] if len(shape) == 3 else shape[1],))


@dataclass(frozen=True, slots=True)
class Active(LayerSpec):
    """Only the network's activation."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        return Resolved(shapes[0])


@dataclass(frozen=True, slots=True)
class Add(LayerSpec):
    """Sum of layers of the same shape, then an activation if `active`."""

    active: bool = False

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        if len(set(shapes)) != 1:
            raise ValueError(f"layer {self.name!r} cannot add {shapes}")
        return Resolved(shapes[0])


@dataclass(frozen=True, slots=True)
class Concat(LayerSpec):
    """Concatenation of the maps of several layers."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        if len({shape[1:] for shape in shapes}) != 1:
            raise ValueError(f"layer {self.name!r} cannot join {shapes}")
        return Resolved((sum(shape[0] for shape in shapes), *shapes[0][1:]))


@dataclass(frozen=True, slots=True)
class Linear(LayerSpec):
    """Fully connected layer with bias, and an activation unless it is the classifier. Images are flattened. With `each`
    it is applied to every position of a sequence separately."""

    features: int
    classifier: bool = False
    each: bool = False

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        features, fan_in = (
            self.features if self.classifier else reduced(self.features, width),
            shape[-1] if self.each else prod(shape),
        )
        weight = Variable("weight", (features, fan_in), "normal", fan_in)
        positions = shape[:-1] if self.each else ()
        return Resolved(
            (*positions, features), (weight, Variable("bias", (features,), "zeros")), weight.elements * prod(positions)
        )


def activated(spec: LayerSpec) -> bool:
    """Whether the network's activation follows the layer."""
    if isinstance(spec, Linear):
        return not spec.classifier
    return isinstance(spec, Active) or (isinstance(spec, Conv | Norm | Add) and spec.active)
