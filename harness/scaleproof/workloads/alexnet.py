"""AlexNet in its second form (Krizhevsky 2014, "One weird trick"), as TF-slim's alexnet_v2 writes it."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

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

# as xue2019 counts it
alexnet = Workload(
    name="alexnet",
    summary="AlexNet (slim v2), 3x224x224, 10 classes, 46.2 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=67,
    layers=_ALEXNET,
    reference=ReferenceCounts(
        weights=46_238_400,
        biases=9_482,
        forward_mac=732_500_736,
        source="TF-slim alexnet_v2 with 10 classes; its fc6 is a 5x5 convolution without "
        "padding on 5x5 pixels, counted here as fully connected",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
        tensors=16,
        mib=176.42,
    ),
)

PLUGIN = alexnet
