"""ResNet-50 (He et al. 2015), with the stride of a bottleneck in its 3x3 convolution."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import Add, Linear, Mean, Pool
from scaleproof.workloads.networks import Network, build

EPSILON = 1.001e-5
"""Of the normalisation: the published 1e-5, as near as TensorFlow's kernel takes it."""


def _bottleneck(blocks: Blocks, name: str, before: str, features: int, stride: int, project: bool) -> str:
    blocks.conv(f"{name}_a", features, 1, pad=0, after=before)
    blocks.conv(f"{name}_b", features, 3, stride, pad=1)
    narrow = blocks.conv(f"{name}_c", 4 * features, 1, pad=0, active=False)
    skip = (
        blocks.conv(f"{name}_skip", 4 * features, 1, stride, pad=0, after=before, active=False) if project else before
    )
    return blocks.put(Add(f"{name}_sum", active=True, inputs=(narrow, skip)))


def resnet50(image_side: int | None = None, width: float = 1.0) -> Network:
    """ResNet-50; 224 pixels a side, 1000 classes. Every side from 1 on leaves pixels, since all its windows are padded."""
    side = image_side or 224
    blocks = Blocks(epsilon=EPSILON)
    blocks.conv("conv1", 64, 7, 2, pad=3)
    last = blocks.put(Pool("pool1", 3, stride=2, pad=1))
    for stage, (features, bottlenecks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for number in range(1, bottlenecks + 1):
            last = _bottleneck(
                blocks, f"layer{stage}_{number}", last, features, 2 if stage > 1 and number == 1 else 1, number == 1
            )
    blocks.put(Mean("mean"))
    blocks.put(Linear("fc", 1000, classifier=True))
    return build("resnet50", (3, side, side), blocks.table, width)
