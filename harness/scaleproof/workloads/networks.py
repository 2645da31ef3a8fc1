"""Networks as data: all frameworks, the counts in docs and tests, and the replay of compute use the same table of
layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scaleproof.spec.errors import FieldError
from scaleproof.workloads.layers import Activation, LayerSpec, Norm, Shape, Variable

INPUT = "input"
"""Name of the network's input."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer with all its sizes resolved. Shapes are per sample."""

    spec: LayerSpec
    inputs: tuple[str, ...]
    """Names of the layers it reads."""
    input_shape: Shape
    """Shape of the first input."""
    output_shape: Shape
    variables: tuple[Variable, ...]
    mac: int
    """Multiply-accumulates per sample of the forward pass, of products with weights and those of attention."""
    input_mac: int
    """Part of `mac` that the gradient of the layer's input takes."""

    @property
    def name(self) -> str:
        """The layer's name in the paper's table."""
        return self.spec.name

    @property
    def weight_shape(self) -> Shape:
        """(out, in, k, k) or (out, in) of its first weight; empty without weights."""
        return next((variable.shape for variable in self.variables if len(variable.shape) > 1), ())

    @property
    def weights(self) -> int:
        """Number of values in tensors with more than one dimension."""
        return sum(variable.elements for variable in self.variables if len(variable.shape) > 1)

    @property
    def biases(self) -> int:
        """Number of biases, scales and offsets."""
        return sum(variable.elements for variable in self.variables if len(variable.shape) == 1)


@dataclass(frozen=True, slots=True)
class Network:
    """A network with all sizes resolved for a `width` and an `image_side`. Its last layer computes the logits."""

    name: str
    input_shape: Shape
    """(maps, side, side), (positions, features), (features,), or (positions,) of tokens."""
    layers: tuple[Layer, ...]
    activation: Activation = "relu"
    vocabulary: int | None = None
    """Inputs are tokens, int64 below this; None: float32."""
    auxiliary: str | None = None
    """Name of a second layer of logits, whose loss is added with weight AUXILIARY_WEIGHT in training. Where it has no
    logits for each label, its label is the first one of a sample, modulo its classes."""

    @property
    def classes(self) -> int:
        """Number of classes of a label."""
        return self.layers[-1].output_shape[-1]

    @property
    def regression(self) -> bool:
        """Whether it has one output, which is a number: labels are float32, the loss is half the mean squared error."""
        return self.classes == 1

    @property
    def label_shape(self) -> Shape:
        """Shape of the labels of one sample: () for one label, (positions,) for a label at every position."""
        return self.layers[-1].output_shape[:-1]

    @property
    def trainable(self) -> tuple[Layer, ...]:
        """Layers that have parameters, in forward order."""
        return tuple(layer for layer in self.layers if layer.variables)

    @property
    def parameter_shapes(self) -> list[tuple[str, Shape]]:
        """Name and canonical shape of every parameter in forward order: weight (out, in[, k, k]), then bias (out,)."""
        return [
            (f"{layer.name}.{variable.name}", variable.shape) for layer in self.layers for variable in layer.variables
        ]

    @property
    def parameters(self) -> int:
        """Trained values: weights, biases, scales and offsets."""
        return sum(layer.weights + layer.biases for layer in self.layers)

    @property
    def normalises(self) -> bool:
        """Whether it has batch normalisations."""
        return any(isinstance(layer.spec, Norm) for layer in self.layers)

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
        """FLOP per sample of a training step: forward, input gradient and weight gradient cost the same; the first
        layer has no input gradient."""
        return 3 * self.forward_flop - 2 * self.trainable[0].input_mac

    @property
    def input_indices(self) -> list[tuple[int, ...]]:
        """For every layer, the indices of its inputs: 0 is the network's input, n the output of layer n - 1."""
        number = {INPUT: 0} | {layer.name: index for index, layer in enumerate(self.layers, 1)}
        return [tuple(number[name] for name in layer.inputs) for layer in self.layers]

    @property
    def heads(self) -> tuple[int, ...]:
        """Indices of the layers of logits: the last layer, then the auxiliary one if there is one."""
        last = len(self.layers) - 1
        return (
            (last,) if self.auxiliary is None else (last, [layer.name for layer in self.layers].index(self.auxiliary))
        )


def evaluated(network: Network, reference: int) -> Network:
    """The network for tests: in a pass whose first `reference` samples are training samples, their mean and variance
    normalise all samples."""
    layers = [
        replace(layer, spec=replace(layer.spec, reference=reference)) if isinstance(layer.spec, Norm) else layer
        for layer in network.layers
    ]
    return replace(network, layers=tuple(layers))


AUXILIARY_WEIGHT = 0.4
"""Weight of the loss of an auxiliary head, as TF-slim trains Inception-v3."""


def build(
    name: str,
    input_shape: Shape,
    specs: Sequence[LayerSpec],
    width: float,
    activation: Activation = "relu",
    *,
    vocabulary: int | None = None,
    auxiliary: str | None = None,
) -> Network:
    """Resolves a table of layers. `width` scales hidden features, but not inputs and classes. Raises FieldError when no
    pixels are left after a layer."""
    shapes, before = {INPUT: input_shape}, INPUT
    layers = []
    for spec in specs:
        inputs = spec.inputs or (before,)
        resolved = spec.resolve([shapes[other] for other in inputs], width)
        if any(side < 1 for side in resolved.output_shape):
            raise FieldError(
                "workload.image_side",
                f"workload {name!r}: image_side {input_shape[-1]} leaves no pixels after layer {spec.name!r}; "
                "give a larger one",
            )
        input_mac = resolved.mac if resolved.input_mac is None else resolved.input_mac
        layers.append(
            Layer(spec, inputs, shapes[inputs[0]], resolved.output_shape, resolved.variables, resolved.mac, input_mac)
        )
        shapes[spec.name], before = resolved.output_shape, spec.name
    return Network(name, input_shape, tuple(layers), activation, vocabulary, auxiliary)
