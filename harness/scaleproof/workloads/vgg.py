"""VGG-A and VGG-16 (Simonyan and Zisserman 2014, configurations A and D) and a small net of the same style for 8x8
digits."""

from __future__ import annotations

from scaleproof.workloads.layers import Conv, Linear, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

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
_VGG_16_BODY = (
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

vgg_a = Workload(
    name="vgg_a",
    title="VGG-A",
    summary="VGG-A, 3x224x224, 132.9 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=32,
    layers=_VGG_A,
    reference=ReferenceCounts(
        weights=132_851_392,
        biases=11_944,
        forward_mac=7_609_090_048,
        source="soumith/convnet-benchmarks@b458aab/torch7/imagenet_winners/vgg_a.lua",
        provenance="author_code (shapes), derived (counts)",
    ),
)
# as xue2019 counts it
vgg16 = Workload(
    name="vgg16",
    summary="VGG-16, 3x224x224, 10 classes, 134.3 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=32,
    layers=(*_VGG_16_BODY, Linear("fc8", 10, classifier=True)),
    reference=ReferenceCounts(
        weights=134_289_088,
        biases=12_426,
        forward_mac=15_466_209_280,
        source="VGG-16 (configuration D) with 10 classes",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
        tensors=32,
        mib=512.32,
    ),
)
# as tf_cnn_benchmarks trains it (awan2019)
vgg16_imagenet = Workload(
    name="vgg16_imagenet",
    summary="VGG-16, 3x224x224, 1001 classes, 138.4 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=32,
    layers=(*_VGG_16_BODY, Linear("fc8", 1001, classifier=True)),
    reference=ReferenceCounts(
        weights=138_348_224,
        biases=13_417,
        forward_mac=15_470_268_416,
        source="VGG-16 (configuration D) with the 1001 classes of tensorflow/benchmarks@9165a70",
        provenance="memory_high (shape), derived (counts)",
    ),
)
# Smooth (tanh, average pooling): rounding cannot flip a unit or the largest pixel of a pool, so equivalence can be
# judged near rounding.
vgg_digits = Workload(
    name="vgg_digits",
    title="VGG-style, digits",
    summary="small VGG-style net for 8x8 digits",
    input_shape=(1, 8, 8),
    smallest_side=4,
    layers=_VGG_DIGITS,
    activation="tanh",
    reference=ReferenceCounts(
        weights=22_800,
        biases=154,
        forward_mac=239_232,
        source="this project: VGG style for 8x8 digits",
        provenance="own (shapes), derived (counts)",
    ),
)

PLUGINS = (vgg_a, vgg16, vgg16_imagenet, vgg_digits)
