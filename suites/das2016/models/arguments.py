"""What the metrics of arithmetic need from a claim's `x`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from scaleproof.claims.arithmetic import Amount, Arguments, Count, RowId, Share, Workers, Workload, network_of
from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.workloads.layers import Conv, Linear
from scaleproof.workloads.networks import Layer


def conv_layers(workload: str) -> list[Layer]:
    """The convolutions of the layer-exact network."""
    return [layer for layer in network_of(workload).layers if isinstance(layer.spec, Conv)]


def fully_connected(workload: str) -> dict[str, Layer]:
    """The fully connected layers of the layer-exact network by name."""
    return {layer.name: layer for layer in network_of(workload).layers if isinstance(layer.spec, Linear)}


class Machine(Arguments):
    """A node and its network."""

    cores: Count = Field(description="Cores of the node.")
    ghz: Amount = Field(description="Clock of a core, in GHz.")
    gigabytes_per_s: Amount = Field(description="Rate of its link, in GB/s.")


def _with_convolutions(workload: str) -> str:
    if not conv_layers(workload):
        having = [name for name in registry.names("workload") if conv_layers(name)]
        raise ValueError(f"workload {workload!r} has no convolution; {registry.nearest(workload, having)}")
    return workload


class Convolutions(Arguments):
    """The convolutions of a network."""

    workload: Annotated[Workload, AfterValidator(_with_convolutions)] = Field(description="The network.")
    overlap: Share = Field(description="Share of receiving new weights that hides behind sending gradients.")


class ConvolutionsAtPoints(Convolutions):
    """The convolutions of a network at a minibatch."""

    points: Count = Field(description="Data points of a node and step (MB).")


class ConvolutionsOn(Convolutions):
    """The convolutions of a network on a machine."""

    machine: Machine = Field(description="The node and its network.")


class ConvolutionsSpread(ConvolutionsOn):
    """A minibatch of a network over nodes."""

    minibatch: Count = Field(description="Data points of a step, all nodes together.")


class DividedLayer(Arguments):
    """A fully connected layer that is divided over nodes."""

    workload: Workload = Field(description="The network.")
    layer: str = Field(description="The name of one of its fully connected layers.")
    nodes: Workers = Field(description="Nodes (N).")
    minibatch: Count = Field(description="Data points of a step, all nodes together (MB).")

    @model_validator(mode="after")
    def _can_be_divided(self) -> DividedLayer:
        layers = fully_connected(self.workload)
        if self.layer not in layers:
            advice = registry.nearest(self.layer, list(layers)) if layers else "it has none"
            raise FieldError("layer", f"{self.workload!r} has no fully connected layer {self.layer!r}; {advice}")
        if self.nodes > (features := layers[self.layer].output_shape[0]):
            raise FieldError("nodes", f"{self.nodes} nodes for the {features} features of {self.layer!r}")
        return self


class OfSpeedup(Arguments):
    """Which published speed-up."""

    speedup: RowId = Field(description="Id of its row.")


class OnNodes(Arguments):
    """What the `x` of a published speed-up must have."""

    nodes: Count = Field(description="Nodes.")
