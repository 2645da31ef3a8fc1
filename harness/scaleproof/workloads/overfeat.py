"""OverFeat, the fast network (Sermanet et al. 2013)."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

_OVERFEAT_FAST = (
    Conv("conv1", 96, 11, stride=4),
    Pool("pool1"),
    Conv("conv2", 256, 5),
    Pool("pool2"),
    Conv("conv3", 512, 3, pad=1),
    Conv("conv4", 1024, 3, pad=1),
    Conv("conv5", 1024, 3, pad=1),
    Pool("pool5"),
    Linear("fc6", 3072),
    Linear("fc7", 4096),
    Linear("fc8", 1000, classifier=True),
)

overfeat_fast = Workload(
    name="overfeat_fast",
    title="OverFeat-FAST",
    summary="OverFeat-FAST, 3x231x231, 145.9 M parameters",
    input_shape=(3, 231, 231),
    smallest_side=71,
    layers=_OVERFEAT_FAST,
    reference=ReferenceCounts(
        weights=145_909_792,
        biases=11_080,
        forward_mac=2_801_403_904,
        source="soumith/convnet-benchmarks@b458aab/torch7/imagenet_winners/overfeat.lua",
        provenance="author_code (shapes), derived (counts)",
    ),
)

PLUGIN = overfeat_fast
