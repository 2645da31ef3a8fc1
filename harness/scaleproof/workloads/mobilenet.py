"""MobileNet (Howard et al. 2017) and MobileNetV2 (Sandler et al. 2018) at full width, with the counts of
keras.applications."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import Add, Linear, Mean
from scaleproof.workloads.networks import Network, build

_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *(((512, 1),) * 5), (1024, 2), (1024, 1))
"""Features and stride of each depthwise separable block."""
_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, features, repetitions, stride of the first."""


def mobilenet(image_side: int | None = None, width: float = 1.0) -> Network:
    """MobileNet; 224 pixels a side, 1000 classes. Five strides of two: the side must be at least 17."""
    side = image_side or 224
    blocks = Blocks()
    blocks.conv("conv1", 32, 3, 2)
    for number, (features, stride) in enumerate(_V1, 1):
        blocks.depthwise(f"block{number}.depthwise", 3, stride)
        blocks.conv(f"block{number}.pointwise", features, 1)
    blocks.put(Mean("mean"))
    blocks.put(Linear("fc", 1000, classifier=True))
    return build("mobilenet", (3, side, side), blocks.table, width, "relu6")


def mobilenet_v2(image_side: int | None = None, width: float = 1.0) -> Network:
    """MobileNetV2; 224 pixels a side, 1000 classes. Five strides of two: the side must be at least 17."""
    side = image_side or 224
    blocks = Blocks()
    last, before, number = blocks.conv("conv1", 32, 3, 2), 32, 0
    for expansion, features, repetitions, first_stride in _V2:
        for repetition in range(repetitions):
            name, entry, stride = f"block{number}", last, 1 if repetition else first_stride
            if expansion > 1:
                blocks.conv(f"{name}.expand", expansion * before, 1)
            blocks.depthwise(f"{name}.depthwise", 3, stride)
            last = blocks.conv(f"{name}.project", features, 1, active=False)
            if stride == 1 and features == before:
                last = blocks.put(Add(f"{name}.sum", inputs=(entry, last)))
            before, number = features, number + 1
    blocks.conv("conv2", 1280, 1)
    blocks.put(Mean("mean"))
    blocks.put(Linear("fc", 1000, classifier=True))
    return build("mobilenet_v2", (3, side, side), blocks.table, width, "relu6")
