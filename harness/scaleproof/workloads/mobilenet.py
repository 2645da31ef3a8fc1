"""MobileNet (Howard et al. 2017) and MobileNetV2 (Sandler et al. 2018) at full width, with the counts of
keras.applications."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import Add, LayerSpec, Linear, Mean
from scaleproof.workloads.workload import ReferenceCounts, Workload

_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *(((512, 1),) * 5), (1024, 2), (1024, 1))
"""Features and stride of each depthwise separable block."""
_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, features, repetitions, stride of the first."""


def _mobilenet() -> list[LayerSpec]:
    blocks = Blocks()
    blocks.conv("conv1", 32, 3, 2)
    for number, (features, stride) in enumerate(_V1, 1):
        blocks.depthwise(f"block{number}.depthwise", 3, stride)
        blocks.conv(f"block{number}.pointwise", features, 1)
    blocks.append(Mean("mean"))
    blocks.append(Linear("fc", 1000, classifier=True))
    return blocks.table


def _mobilenet_v2() -> list[LayerSpec]:
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
                last = blocks.append(Add(f"{name}.sum", inputs=(entry, last)))
            before, number = features, number + 1
    blocks.conv("conv2", 1280, 1)
    blocks.append(Mean("mean"))
    blocks.append(Linear("fc", 1000, classifier=True))
    return blocks.table


mobilenet = Workload(
    name="mobilenet",
    summary="MobileNet, 3x224x224, 4.2 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=17,
    layers=_mobilenet(),
    activation="relu6",
    reference=ReferenceCounts(
        weights=4_209_088,
        biases=22_888,
        forward_mac=568_740_352,
        source="keras.applications.MobileNet, trainable values",
        provenance="derived",
    ),
)
mobilenet_v2 = Workload(
    name="mobilenet_v2",
    summary="MobileNetV2, 3x224x224, 3.5 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=17,
    layers=_mobilenet_v2(),
    activation="relu6",
    reference=ReferenceCounts(
        weights=3_469_760,
        biases=35_112,
        forward_mac=300_774_272,
        source="keras.applications.MobileNetV2, trainable values",
        provenance="derived",
    ),
)

PLUGINS = (mobilenet, mobilenet_v2)
