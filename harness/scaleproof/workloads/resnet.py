"""ResNet-18, ResNet-50 and ResNet-101 (He et al. 2015) and a wide one (Zagoruyko and Komodakis 2016), with the stride
of a bottleneck in its 3x3 convolution."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import Add, LayerSpec, Linear, Mean, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

EPSILON = 1.001e-5
"""Epsilon of the normalisation: the smallest value near the published 1e-5 that TensorFlow's kernel accepts."""


def _bottleneck(
    blocks: Blocks, name: str, before: str, features: int, stride: int, project: bool, widening: int
) -> str:
    blocks.conv(f"{name}_a", widening * features, 1, pad=0, after=before)
    blocks.conv(f"{name}_b", widening * features, 3, stride, pad=1)
    narrow = blocks.conv(f"{name}_c", 4 * features, 1, pad=0, active=False)
    skip = (
        blocks.conv(f"{name}_skip", 4 * features, 1, stride, pad=0, after=before, active=False) if project else before
    )
    return blocks.append(Add(f"{name}_sum", active=True, inputs=(narrow, skip)))


def _plain(blocks: Blocks, name: str, before: str, features: int, stride: int, project: bool) -> str:
    """Two convolutions of 3x3, as networks of up to 34 layers have."""
    blocks.conv(f"{name}_a", features, 3, stride, pad=1, after=before)
    second = blocks.conv(f"{name}_b", features, 3, pad=1, active=False)
    skip = blocks.conv(f"{name}_skip", features, 1, stride, pad=0, after=before, active=False) if project else before
    return blocks.append(Add(f"{name}_sum", active=True, inputs=(second, skip)))


def _resnet(
    blocks_of: tuple[int, int, int, int], classes: int, *, widening: int = 1, plain: bool = False
) -> list[LayerSpec]:
    blocks = Blocks(epsilon=EPSILON)
    blocks.conv("conv1", 64, 7, 2, pad=3)
    last = blocks.append(Pool("pool1", 3, stride=2, pad=1))
    for stage, (features, count) in enumerate(zip((64, 128, 256, 512), blocks_of, strict=True), 1):
        for number in range(1, count + 1):
            stride, name = 2 if stage > 1 and number == 1 else 1, f"layer{stage}_{number}"
            if plain:
                last = _plain(blocks, name, last, features, stride, stage > 1 and number == 1)
            else:
                last = _bottleneck(blocks, name, last, features, stride, number == 1, widening)
    blocks.append(Mean("mean"))
    blocks.append(Linear("fc", classes, classifier=True))
    return blocks.table


# Every side from 1 on leaves pixels, since all windows are padded.
resnet18 = Workload(
    name="resnet18",
    summary="ResNet-18, 3x224x224, 11.7 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=1,
    layers=_resnet((2, 2, 2, 2), 1000, plain=True),
    reference=ReferenceCounts(
        weights=11_678_912,
        biases=10_600,
        forward_mac=1_814_073_344,
        source="ResNet-18, 1000 classes; torchvision's resnet18 states 11,689,512 parameters and 1.81 G "
        "multiply-accumulates",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
    ),
)
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

# of suite tensoropt2022, which does not say which wide ResNet it means
wide_resnet50 = Workload(
    name="wide_resnet50",
    summary="Wide ResNet-50-2, 3x224x224, 68.9 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=1,
    layers=_resnet((3, 4, 6, 3), 1000, widening=2),
    reference=ReferenceCounts(
        weights=68_814_016,
        biases=69_224,
        forward_mac=11_398_021_120,
        source="ResNet-50 with bottlenecks twice as wide inside (Zagoruyko and Komodakis 2016); torchvision's "
        "wide_resnet50_2 states 68,883,240 parameters and 11.4 G multiply-accumulates",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
    ),
)

PLUGINS = (resnet18, resnet50, resnet101, wide_resnet50)
