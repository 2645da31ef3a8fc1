"""Layers of sequences, whose shapes are (positions,) of tokens or (positions, features)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scaleproof.workloads.layers import LayerSpec, Resolved, Shape, Variable, reduced

GATES = {"lstm": ("input", "forget", "cell", "output"), "gru": ("reset", "update", "candidate")}


@dataclass(frozen=True, slots=True)
class Embedding(LayerSpec):
    """A vector of `features` for each token of a sequence."""

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
    """LSTM or GRU over a sequence. It starts from zeros, or (GRU only) from the state in its second input. It returns
    the last state, or with `every` all states.

    Each gate has three tensors, an input weight, a recurrent weight and a bias, like the published counts of xue2019.
    The GRU applies its reset gate before the recurrent product (Cho et al. 2014), so that one bias is enough.
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
