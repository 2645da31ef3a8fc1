"""Networks as data: one table of layers drives every framework, the counts in docs and tests, and the replay of compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias

from harness.spec import registry
from harness.spec.errors import SpecError

if TYPE_CHECKING:
    from harness.spec.case import TrainCase

BLOCK = 8
"""Reduced feature counts are multiples of this: the SIMD block of the layouts that CPU libraries use."""
DIGITS_PIXELS, DIGITS_CLASSES = 64, 10
DIGITS_TRAINING, DIGITS_TEST = 1438, 359
"""Four fifths of scikit-learn's 1797 images are for training."""


@dataclass(frozen=True, slots=True)
class Conv:
    """Square convolution with bias and activation, as a paper writes it: only the output maps are given."""

    name: str
    features: int
    kernel: int
    stride: int = 1
    pad: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """Pooling without overlap, kernel = stride, of the maximum or the average; a remainder of the side is cut off."""

    name: str
    kernel: int = 2
    average: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """Fully connected layer with bias, and activation unless it is the classifier."""

    name: str
    features: int
    classifier: bool = False


Activation = Literal["relu", "tanh"]
LayerSpec: TypeAlias = Conv | Pool | Linear


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer with all its sizes resolved. Shapes are per sample: (maps, side, side) or (features,)."""

    spec: LayerSpec
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    """(out, in, k, k) or (out, in); empty for pooling."""

    @property
    def name(self) -> str:
        """The layer's name in the paper's table."""
        return self.spec.name

    @property
    def weights(self) -> int:
        """Number of weights."""
        return prod(self.weight_shape) if self.weight_shape else 0

    @property
    def biases(self) -> int:
        """Number of biases: one per output map or feature."""
        return self.weight_shape[0] if self.weight_shape else 0

    @property
    def mac(self) -> int:
        """Multiply-accumulates per sample of the forward pass; biases and pooling not counted."""
        return self.weights * prod(self.output_shape[1:])


@dataclass(frozen=True, slots=True)
class Network:
    """A resolved network: what `width` and `image_side` made of a paper's table."""

    name: str
    input_shape: tuple[int, ...]
    """(maps, side, side) or (features,)."""
    classes: int
    layers: tuple[Layer, ...]
    activation: Activation = "relu"

    @property
    def trainable(self) -> tuple[Layer, ...]:
        """Layers that have parameters, in forward order."""
        return tuple(layer for layer in self.layers if layer.weight_shape)

    @property
    def parameter_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and canonical shape of every parameter in forward order: weight (out, in[, k, k]), then bias (out,)."""
        return [item for layer in self.trainable for item in ((f"{layer.name}.weight", layer.weight_shape), (f"{layer.name}.bias", (layer.biases,)))]

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum(layer.weights + layer.biases for layer in self.layers)

    @property
    def mac(self) -> int:
        """Multiply-accumulates per sample of the forward pass."""
        return sum(layer.mac for layer in self.layers)

    @property
    def forward_flop(self) -> int:
        """FLOP per sample of the forward pass: 2 per multiply-accumulate."""
        return 2 * self.mac

    @property
    def train_flop(self) -> int:
        """FLOP per sample of a training step: forward, input gradient and weight gradient cost the same; the first layer has no input gradient."""
        return 3 * self.forward_flop - 2 * self.trainable[0].mac


def reduced(features: int, width: float) -> int:
    """Hidden features under a width factor: the nearest multiple of 8 (ties up), at least 8; exact at 1.0."""
    return features if width == 1.0 else max(BLOCK, int(features * width / BLOCK + 0.5) * BLOCK)


def build(name: str, input_shape: tuple[int, ...], specs: Sequence[LayerSpec], width: float, activation: Activation = "relu") -> Network:
    """Resolve a table. `width` scales hidden features; inputs and classes stay. SpecError when a layer is left without pixels."""
    shape, layers = input_shape, []
    for spec in specs:
        layer = _resolve(spec, shape, width)
        if any(side < 1 for side in layer.output_shape):
            raise SpecError(f"workload {name!r}: image_side {input_shape[-1]} leaves no pixels after layer {layer.name!r}; give a larger one")
        layers.append(layer)
        shape = layer.output_shape
    return Network(name, input_shape, shape[0], tuple(layers), activation)


def _resolve(spec: LayerSpec, shape: tuple[int, ...], width: float) -> Layer:
    if isinstance(spec, Pool):
        side = shape[1] // spec.kernel
        return Layer(spec, shape, (shape[0], side, side), ())
    if isinstance(spec, Conv):
        features, side = reduced(spec.features, width), (shape[1] + 2 * spec.pad - spec.kernel) // spec.stride + 1
        return Layer(spec, shape, (features, side, side), (features, shape[0], spec.kernel, spec.kernel))
    features = spec.features if spec.classifier else reduced(spec.features, width)
    return Layer(spec, shape, (features,), (features, prod(shape)))


def flat_input(name: str, features: int, image_side: int | None) -> tuple[int, ...]:
    """Input shape of a network without images; SpecError when an image side is given."""
    if image_side is not None:
        raise SpecError(f"workload {name!r} takes no images: leave out image_side")
    return (features,)


def network_of(case: TrainCase) -> Network:
    """The case's network, resolved; imports no framework."""
    network: Network = registry.load("workload", case.workload)(case.image_side, case.width)
    return network


def check_workload(case: TrainCase) -> Network:
    """Everything about a case's workload that can be wrong before a process starts; raises SpecError, imports no framework."""
    network = network_of(case)
    if case.data == "digits":
        if prod(network.input_shape) != DIGITS_PIXELS or network.classes != DIGITS_CLASSES:
            raise SpecError(f"workload {case.workload!r} does not fit data 'digits' (8x8 images, 10 classes); use vgg_digits or dnn_digits")
        if case.minibatch > DIGITS_TRAINING:
            raise SpecError(f"minibatch {case.minibatch} is larger than the training set of data 'digits', {DIGITS_TRAINING} images")
    return network
