"""Linear regression: a network of one layer and one output."""

from __future__ import annotations

from scaleproof.workloads.layers import Linear
from scaleproof.workloads.workload import ReferenceCounts, Workload

_LINEAR = (Linear("out", 1, classifier=True),)

linear_regression = Workload(
    name="linear_regression",
    title="Linear model",
    summary="linear regression, 999 weights and a constant",
    input_shape=(999,),
    layers=_LINEAR,
    activation="tanh",
    reference=ReferenceCounts(
        weights=999,
        biases=1,
        forward_mac=999,
        source="this project: as many parameters as the linear model of psp2017's simulation",
        provenance="own (shapes), derived (counts)",
    ),
)

PLUGINS = (linear_regression,)
