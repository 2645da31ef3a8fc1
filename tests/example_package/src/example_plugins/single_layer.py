"""A workload: one layer, for trying things out."""

from __future__ import annotations

from scaleproof.workloads.layers import Linear
from scaleproof.workloads.workload import ReferenceCounts, Workload

PLUGIN = Workload(
    name="single_layer",
    summary="one layer of 64 to 10, 650 parameters",
    input_shape=(64,),
    layers=(Linear("fc1", 10, classifier=True),),
    reference=ReferenceCounts(weights=640, biases=10, forward_mac=640, source="counted by hand", provenance="own"),
)
