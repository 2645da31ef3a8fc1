"""AlexNet in its second form (Krizhevsky 2014, "One weird trick"), as TF-slim's alexnet_v2 writes it."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Pool
from scaleproof.workloads.networks import Network, build

_ALEXNET = (
    Conv("conv1", 64, 11, stride=4),
    Pool("pool1", 3, stride=2),
    Conv("conv2", 192, 5, pad=2),
    Pool("pool2", 3, stride=2),
    Conv("conv3", 384, 3, pad=1),
    Conv("conv4", 384, 3, pad=1),
    Conv("conv5", 256, 3, pad=1),
    Pool("pool5", 3, stride=2),
    Linear("fc6", 4096),
    Linear("fc7", 4096),
    Linear("fc8", 10, classifier=True),
)


def alexnet(image_side: int | None = None, width: float = 1.0) -> Network:
    """AlexNet as xue2019 counts it: 224 pixels a side, 10 classes. The side must be at least 67.

    slim's fc6 is a convolution of 5x5 without padding on 5x5 pixels: the same product as a fully connected layer.
    """
    side = image_side or 224
    return build("alexnet", (3, side, side), _ALEXNET, width)
