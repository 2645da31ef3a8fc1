"""A small network with batch normalisation for 8x8 images: averages of its replicas need statistics of their own."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Mean, Norm, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

_BN_DIGITS = (
    Conv("conv1", 16, 3, pad=1, bias=False, active=False),
    Norm("norm1"),
    Conv("conv2", 32, 3, pad=1, bias=False, active=False),
    Norm("norm2"),
    Pool("pool2", average=True),
    Conv("conv3", 64, 3, pad=1, bias=False, active=False),
    Norm("norm3"),
    Mean("mean"),
    Linear("out", 10, classifier=True),
)

# Smooth (tanh), as vgg_digits.
bn_digits = Workload(
    name="bn_digits",
    title="CNN with batch normalisation, digits",
    summary="small convolutional net with batch normalisation for 8x8 digits",
    input_shape=(1, 8, 8),
    smallest_side=2,
    layers=_BN_DIGITS,
    activation="tanh",
    reference=ReferenceCounts(
        weights=23_824,
        biases=234,
        forward_mac=599_680,
        source="this project: convolutions of 3x3, each normalised, for 8x8 digits",
        provenance="own (shapes), derived (counts)",
    ),
)

PLUGINS = (bn_digits,)
