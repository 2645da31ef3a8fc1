"""OverFeat, the fast network (Sermanet et al. 2013)."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Pool
from scaleproof.workloads.networks import Network, build

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


def overfeat_fast(image_side: int | None = None, width: float = 1.0) -> Network:
    """OverFeat-FAST; 231 pixels a side, 1000 classes. The side must be at least 71."""
    side = image_side or 231
    return build("overfeat_fast", (3, side, side), _OVERFEAT_FAST, width)
