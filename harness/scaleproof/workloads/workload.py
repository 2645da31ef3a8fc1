"""The descriptor of a network: layers, full size, allowed reductions, and reference counts from a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import WorkloadPlugin
from scaleproof.workloads.layers import Activation, LayerSpec, Shape
from scaleproof.workloads.networks import Network, build


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCounts:
    """Counts of the network at full size from an independent source. Tests compare the table with them."""

    weights: int
    # biases, and scales and offsets of batch normalisations
    biases: int
    # multiply-accumulates of one sample's forward pass, biases and pooling not counted; 1 MAC = 2 FLOP
    forward_mac: int
    # where the shapes were read
    source: str
    # `author_code`: shapes from the named public code; `memory_high`, `memory_medium`: shapes known from memory, their
    # total agrees with the published one; `derived`: computed from the shapes; `own`: a small network of this project
    provenance: str
    # number of trained tensors, if a paper gives it
    tensors: int | None = None
    # MiB of the parameters in float32, if a paper gives it
    mib: float | None = None

    @property
    def parameters(self) -> int:
        """Trained values."""
        return self.weights + self.biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(WorkloadPlugin):
    """One network of a family file. Calling it resolves the network at a reduced image side and width."""

    implementation: None = None
    # at full size: (maps, side, side), (positions, features), (features,), or (positions,) of tokens
    input_shape: Shape
    # the table, or a function of the width that gives a table with the width applied already
    layers: Sequence[LayerSpec] | Callable[[float], Sequence[LayerSpec]] = field(repr=False)
    reference: ReferenceCounts
    # smallest image side that leaves pixels for every layer; None: the network takes no images
    smallest_side: int | None = None
    activation: Activation = "relu"
    # inputs are tokens, int64 below this; None: float32
    vocabulary: int | None = None
    # a layer with logits of its own, see Network
    auxiliary: str | None = None

    def load(self) -> Workload:
        """Itself."""
        return self

    def __call__(self, image_side: int | None = None, width: float = 1.0) -> Network:
        """The resolved network. Raises FieldError for an image side that is not allowed."""
        shape = self._shape(image_side)
        table, factor = (self.layers(width), 1.0) if callable(self.layers) else (self.layers, width)
        return build(
            self.name, shape, table, factor, self.activation, vocabulary=self.vocabulary, auxiliary=self.auxiliary
        )

    def _shape(self, image_side: int | None) -> Shape:
        if image_side is None:
            return self.input_shape
        if self.smallest_side is None:
            raise FieldError("workload.image_side", f"workload {self.name!r} takes no images: leave out image_side")
        return (self.input_shape[0], image_side, image_side)
