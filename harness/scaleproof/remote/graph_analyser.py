"""Decides whether each tensor that one server sends to another is placed statically or dynamically (xue2019, graph
analyser and transfer protocols).

Static: every dimension is known before the run, so the receiver reserves memory for the tensor and the sender writes
into it. Dynamic: a dimension depends on the batch, the sequence or the data, so a metadata block of fixed size is sent
first and the receiver then reads the tensor. The graphs come from analyse_torch.py and analyse_tensorflow.py; this file
imports no framework.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scaleproof.core.transport_errors import TransportError
from scaleproof.remote.tensor_channel import Edge

Placement = Literal["static", "dynamic"]
Dim = int | str
"""A size, or the name of what the size depends on."""


class PlacementError(TransportError):
    """A tensor cannot be placed as requested."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph, the server that computes it, and the servers that use it. `shape` None: the number of
    dimensions is not known before the run."""

    name: str
    shape: tuple[Dim, ...] | None
    dtype: str
    source: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """A tensor that one server sends to another, its placement, and the reason for it."""

    tensor: Tensor
    target: int
    placement: Placement
    reason: str

    @property
    def nbytes(self) -> int | None:
        """Bytes of the tensor; None where they vary."""
        return self.edge({}).nbytes if self.placement == "static" else None

    def edge(self, largest: Mapping[str, int]) -> Edge:
        """The channel's edge for this tensor. `largest`: maximum of each free dimension, by name. Raises PlacementError
        if a maximum is missing."""
        if self.tensor.shape is None:
            raise PlacementError(
                f"tensor {self.tensor.name!r} has an unknown number of dimensions, which a description cannot hold"
            )
        if missing := [size for size in self.tensor.shape if isinstance(size, str) and size not in largest]:
            raise PlacementError(f"tensor {self.tensor.name!r} depends on {missing[0]}; give its largest size")
        shape = tuple(largest[size] if isinstance(size, str) else size for size in self.tensor.shape)
        return Edge(
            self.tensor.name, self.tensor.source, self.target, shape, self.tensor.dtype, self.placement == "static"
        )


def decide(tensors: Sequence[Tensor], forced: Mapping[str, Placement] | None = None) -> list[Decision]:
    """One decision per tensor and server that it is sent to, in the order of the graph; a tensor that stays on its
    server needs none.

    `forced`: placements by name that replace the computed ones. Any tensor can be forced to be dynamic; forcing a
    dynamic tensor to be static raises PlacementError.
    """
    forced = forced or {}
    if unknown := sorted(forced.keys() - {tensor.name for tensor in tensors}):
        raise PlacementError(f"no tensor of the graph is called {unknown[0]!r}")
    return [
        _decision(tensor, target, forced.get(tensor.name))
        for tensor in tensors
        for target in dict.fromkeys(tensor.targets)
        if target != tensor.source
    ]


def _decision(tensor: Tensor, target: int, forced: Placement | None) -> Decision:
    placement, reason = _default_placement(tensor)
    if forced == "static" and placement == "dynamic":
        raise PlacementError(f"tensor {tensor.name!r} cannot be placed statically: {reason}")
    if forced is not None and forced != placement:
        placement, reason = forced, f"requested, although {reason}"
    return Decision(tensor, target, placement, reason)


def _default_placement(tensor: Tensor) -> tuple[Placement, str]:
    if tensor.shape is None:
        return "dynamic", "the number of its dimensions is not known before the run"
    free = [f"dimension {index} depends on {size}" for index, size in enumerate(tensor.shape) if isinstance(size, str)]
    return ("dynamic", ", ".join(free)) if free else ("static", "all dimensions are known before the run")
