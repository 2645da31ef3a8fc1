"""Layers as data: what a table says of each, and the sizes it resolves to. Shapes are per sample: (maps, side, side),
(positions, features), (features,)."""

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
"""Pixels on every side, or as many as keep side / stride, rounded up: half before, the larger half after (TensorFlow's
SAME)."""
GATES = {"lstm": ("input", "forget", "cell", "output"), "gru": ("reset", "update", "candidate")}


class Variable(NamedTuple):
    """One trained tensor of a layer: what frameworks call a variable or a parameter."""

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
    """What a spec becomes behind layers of known shapes."""

    output_shape: Shape
    variables: tuple[Variable, ...] = ()
    mac: int = 0
    """Multiply-accumulates per sample of the forward pass; biases, normalisation, pooling, sums and activations are not
    counted."""
    input_mac: int | None = None
    """Those whose gradient goes to the layer's input; None: all."""


@dataclass(frozen=True, slots=True)
class LayerSpec(ABC):
    """A layer as a paper writes it. `inputs` names the layers it reads (`input`: the network's own); empty: the one
    before."""

    name: str
    inputs: tuple[str, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """Sizes behind inputs of these shapes. A side below 1 says that no pixels are left."""


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
    """Positions of a kernel along a side; 0 where a stride would step over everything that is left."""
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
    """The kernel becomes no larger than what is left of the image."""

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
    """Convolution of each map with a kernel of its own, without bias or activation."""

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
    """Batch normalisation with the mean and variance of the minibatch that the rank holds, then an activation where it
    is `active`."""

    scale: bool = True
    active: bool = True
    epsilon: float = 1e-3

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,) = shapes
        scales = (Variable("scale", (shape[0],), "ones"),) if self.scale else ()
        return Resolved(shape, (*scales, Variable("offset", (shape[0],), "zeros")))


@dataclass(frozen=True, slots=True)
class Pool(LayerSpec):
    """Pooling of the maximum, or the average (padded `same` or not at all; padding does not count). `stride` 0: the
    kernel's, without overlap.

    A remainder of the side is cut off.
    """

    kernel: int = 2
    average: bool = False
    stride: int = 0
    pad: Pad = 0
    fit: bool = False
    """The kernel becomes no larger than what is left of the image."""

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
    """Every second pixel of both sides: from the first one on, or from the second with zeros behind the last."""

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
    """The network's activation alone."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        return Resolved(shapes[0])


@dataclass(frozen=True, slots=True)
class Add(LayerSpec):
    """Sum of layers of one shape, then an activation where it is `active`."""

    active: bool = False

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        if len(set(shapes)) != 1:
            raise ValueError(f"layer {self.name!r} cannot add {shapes}")
        return Resolved(shapes[0])


@dataclass(frozen=True, slots=True)
class Concat(LayerSpec):
    """Maps of several layers side by side."""

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        if len({shape[1:] for shape in shapes}) != 1:
            raise ValueError(f"layer {self.name!r} cannot join {shapes}")
        return Resolved((sum(shape[0] for shape in shapes), *shapes[0][1:]))


@dataclass(frozen=True, slots=True)
class Linear(LayerSpec):
    """Fully connected layer with bias, and activation unless it is the classifier; images are flattened, `each`
    position of a sequence is taken alone."""

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
        kept = shape[:-1] if self.each else ()
        return Resolved(
            (*kept, features), (weight, Variable("bias", (features,), "zeros")), weight.elements * prod(kept)
        )


@dataclass(frozen=True, slots=True)
class Embedding(LayerSpec):
    """A vector for each token of a sequence."""

    vocabulary: int
    features: int

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (shape,), features = shapes, reduced(self.features, width)
        return Resolved((*shape, features), (Variable("weight", (self.vocabulary, features), "normal", features),))


@dataclass(frozen=True, slots=True)
class Positions(LayerSpec):
    """Positions `start` to `stop` of a sequence."""

    start: int
    stop: int

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        return Resolved((self.stop - self.start, *shapes[0][1:]))


@dataclass(frozen=True, slots=True)
class Recurrent(LayerSpec):
    """LSTM or GRU over a sequence, from zeros or (GRU) from the state of a second input; gives its last state, or
    `every` one.

    Each gate has an input weight, a recurrent weight and one bias, three tensors, as the published counts of xue2019
    have it. The GRU applies its reset gate before the recurrent product (Cho et al. 2014), which takes one bias.
    """

    features: int
    cell: Literal["lstm", "gru"]
    every: bool = False

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec."""
        (positions, features_in), features = shapes[0], reduced(self.features, width)
        if shapes[1:] and (self.cell != "gru" or shapes[1] != (features,)):
            raise ValueError(f"layer {self.name!r} cannot start from {shapes[1]}")
        variables: list[Variable] = []
        for gate in GATES[self.cell]:
            variables += [
                Variable(f"{gate}.input_weight", (features, features_in), "normal", features_in),
                Variable(f"{gate}.recurrent_weight", (features, features), "normal", features),
                Variable(f"{gate}.bias", (features,), "ones" if gate == "forget" else "zeros"),
            ]
        gates = len(GATES[self.cell])
        read = positions * gates * features * features_in
        output = (positions, features) if self.every else (features,)
        return Resolved(output, tuple(variables), read + positions * gates * features**2, read)
