"""Networks as data: one table of layers drives every framework, the counts in docs and tests, and the replay of
compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaleproof.spec.errors import FieldError
from scaleproof.workloads.layers import Activation, LayerSpec, Shape, Variable

INPUT = "input"
"""What layers call the network's own input."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer with all its sizes resolved. Shapes are per sample."""

    spec: LayerSpec
    inputs: tuple[str, ...]
    """Names of the layers it reads."""
    input_shape: Shape
    """Of the first of them."""
    output_shape: Shape
    variables: tuple[Variable, ...]
    mac: int
    """Multiply-accumulates per sample of the forward pass; only products with weights are counted."""
    input_mac: int
    """Those whose gradient goes to the layer's input."""

    @property
    def name(self) -> str:
        """The layer's name in the paper's table."""
        return self.spec.name

    @property
    def weight_shape(self) -> Shape:
        """(out, in, k, k) or (out, in) of its first weight; empty without one."""
        return next((variable.shape for variable in self.variables if len(variable.shape) > 1), ())

    @property
    def weights(self) -> int:
        """Number of weights: everything that is no vector."""
        return sum(variable.elements for variable in self.variables if len(variable.shape) > 1)

    @property
    def biases(self) -> int:
        """Number of biases, scales and offsets."""
        return sum(variable.elements for variable in self.variables if len(variable.shape) == 1)


@dataclass(frozen=True, slots=True)
class Network:
    """A resolved network: what `width` and `image_side` made of a paper's table. Its last layer gives the logits."""

    name: str
    input_shape: Shape
    """(maps, side, side), (positions, features), (features,), or (positions,) of tokens."""
    layers: tuple[Layer, ...]
    activation: Activation = "relu"
    vocabulary: int | None = None
    """Inputs are tokens, int64 below this; None: float32."""
    auxiliary: str | None = None
    """A layer with logits of its own, whose loss is added with the weight AUXILIARY_WEIGHT while training."""

    @property
    def classes(self) -> int:
        """Number of classes of a label."""
        return self.layers[-1].output_shape[-1]

    @property
    def label_shape(self) -> Shape:
        """Of the labels of one sample: () for one label, (positions,) for one at every position."""
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
    def places(self) -> list[tuple[int, ...]]:
        """For every layer where its inputs are: 0 is the network's input, n the output of layer n - 1."""
        number = {INPUT: 0} | {layer.name: place for place, layer in enumerate(self.layers, 1)}
        return [tuple(number[name] for name in layer.inputs) for layer in self.layers]

    @property
    def heads(self) -> tuple[int, ...]:
        """Numbers of the layers that give logits: the last one, then the auxiliary one where there is one."""
        last = len(self.layers) - 1
        return (
            (last,) if self.auxiliary is None else (last, [layer.name for layer in self.layers].index(self.auxiliary))
        )


AUXILIARY_WEIGHT = 0.4
"""Of the loss of an auxiliary head, as TF-slim trains Inception-v3."""


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
    """Resolve a table. `width` scales hidden features; inputs and classes stay. SpecError when a layer is left without
    pixels."""
    shapes, before = {INPUT: input_shape}, INPUT
    layers = []
    for spec in specs:
        inputs = spec.inputs or (before,)
        found = spec.resolve([shapes[other] for other in inputs], width)
        if any(side < 1 for side in found.output_shape):
            raise FieldError(
                "workload.image_side",
                f"workload {name!r}: image_side {input_shape[-1]} leaves no pixels after layer {spec.name!r}; "
                "give a larger one",
            )
        input_mac = found.mac if found.input_mac is None else found.input_mac
        layers.append(Layer(spec, inputs, shapes[inputs[0]], found.output_shape, found.variables, found.mac, input_mac))
        shapes[spec.name], before = found.output_shape, spec.name
    return Network(name, input_shape, tuple(layers), activation, vocabulary, auxiliary)
