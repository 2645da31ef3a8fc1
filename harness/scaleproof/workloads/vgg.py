"""VGG-A and VGG-16 (Simonyan and Zisserman 2014, configurations A and D) and a small net of the same style for 8x8
digits."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Pool
from scaleproof.workloads.networks import Network, build

_VGG_A = (
    Conv("conv1", 64, 3, pad=1),
    Pool("pool1"),
    Conv("conv2", 128, 3, pad=1),
    Pool("pool2"),
    Conv("conv3_1", 256, 3, pad=1),
    Conv("conv3_2", 256, 3, pad=1),
    Pool("pool3"),
    Conv("conv4_1", 512, 3, pad=1),
    Conv("conv4_2", 512, 3, pad=1),
    Pool("pool4"),
    Conv("conv5_1", 512, 3, pad=1),
    Conv("conv5_2", 512, 3, pad=1),
    Pool("pool5"),
    Linear("fc6", 4096),
    Linear("fc7", 4096),
    Linear("fc8", 1000, classifier=True),
)
_VGG_16 = (
    *(
        layer
        for block, (features, convolutions) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1)
        for layer in (
            *(Conv(f"conv{block}_{number}", features, 3, pad=1) for number in range(1, convolutions + 1)),
            Pool(f"pool{block}"),
        )
    ),
    Linear("fc6", 4096),
    Linear("fc7", 4096),
    Linear("fc8", 10, classifier=True),
)
_VGG_DIGITS = (
    Conv("conv1", 16, 3, pad=1),
    Pool("pool1", average=True),
    Conv("conv2_1", 32, 3, pad=1),
    Conv("conv2_2", 32, 3, pad=1),
    Pool("pool2", average=True),
    Linear("fc3", 64),
    Linear("fc4", 10, classifier=True),
)


def vgg_a(image_side: int | None = None, width: float = 1.0) -> Network:
    """VGG-A; 224 pixels a side, 1000 classes. Five poolings: the side must be at least 32."""
    side = image_side or 224
    return build("vgg_a", (3, side, side), _VGG_A, width)


def vgg16(image_side: int | None = None, width: float = 1.0) -> Network:
    """VGG-16 as xue2019 counts it: 224 pixels a side, 10 classes. The side must be at least 32."""
    side = image_side or 224
    return build("vgg16", (3, side, side), _VGG_16, width)


def vgg_digits(image_side: int | None = None, width: float = 1.0) -> Network:
    """Blocks of 3x3 convolutions and pooling, then two fully connected layers; 8 pixels a side, 10 classes.

    Smooth (tanh, average pooling): rounding cannot flip a unit or a pool's winner, so equivalence can be judged near
    rounding.
    """
    side = image_side or 8
    return build("vgg_digits", (1, side, side), _VGG_DIGITS, width, "tanh")
