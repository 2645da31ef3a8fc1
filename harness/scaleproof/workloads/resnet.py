"""ResNet-50 and ResNet-101 (He et al. 2015), with the stride of a bottleneck in its 3x3 convolution."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import Add, LayerSpec, Linear, Mean, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

EPSILON = 1.001e-5
"""Epsilon of the normalisation: the smallest value near the published 1e-5 that TensorFlow's kernel accepts."""


def _bottleneck(blocks: Blocks, name: str, before: str, features: int, stride: int, project: bool) -> str:
    blocks.conv(f"{name}_a", features, 1, pad=0, after=before)
    blocks.conv(f"{name}_b", features, 3, stride, pad=1)
    narrow = blocks.conv(f"{name}_c", 4 * features, 1, pad=0, active=False)
    skip = (
        blocks.conv(f"{name}_skip", 4 * features, 1, stride, pad=0, after=before, active=False) if project else before
    )
    return blocks.append(Add(f"{name}_sum", active=True, inputs=(narrow, skip)))


def _resnet(bottlenecks_of: tuple[int, int, int, int], classes: int) -> list[LayerSpec]:
    blocks = Blocks(epsilon=EPSILON)
    blocks.conv("conv1", 64, 7, 2, pad=3)
    last = blocks.append(Pool("pool1", 3, stride=2, pad=1))
    for stage, (features, bottlenecks) in enumerate(zip((64, 128, 256, 512), bottlenecks_of, strict=True), 1):
        for number in range(1, bottlenecks + 1):
            last = _bottleneck(
                blocks, f"layer{stage}_{number}", last, features, 2 if stage > 1 and number == 1 else 1, number == 1
            )
    blocks.append(Mean("mean"))
    blocks.append(Linear("fc", classes, classifier=True))
    return blocks.table


# Every side from 1 on leaves pixels, since all its windows are padded.
resnet50 = Workload(
    name="resnet50",
    summary="ResNet-50, 3x224x224, 25.6 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=1,
    layers=_resnet((3, 4, 6, 3), 1000),
    reference=ReferenceCounts(
        weights=25_502_912,
        biases=54_120,
        forward_mac=4_089_184_256,
        source="ResNet-50, 1000 classes, stride in the 3x3 convolution; "
        "keras.applications.ResNet50 has a bias in every convolution besides, and the stride in the 1x1 one",
        provenance="memory_high (shape), derived (counts)",
    ),
)

# as tf_cnn_benchmarks trains it (awan2019), but for the stride of a bottleneck
resnet101 = Workload(
    name="resnet101",
    summary="ResNet-101, 3x224x224, 1001 classes, 44.5 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=1,
    layers=_resnet((3, 4, 23, 3), 1001),
    reference=ReferenceCounts(
        weights=44_444_864,
        biases=106_345,
        forward_mac=7_801_407_488,
        source="ResNet-101 with the 1001 classes of tensorflow/benchmarks@9165a70, stride in the 3x3 convolution as "
        "ours of ResNet-50 (theirs is in the 1x1 one)",
        provenance="memory_high (shape), derived (counts)",
    ),
)

PLUGINS = (resnet50, resnet101)
