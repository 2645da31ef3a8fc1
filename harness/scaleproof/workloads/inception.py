"""Inception-v3 (Szegedy et al. 2015) as TF-slim writes it: batch normalisation with an offset only, and an auxiliary
head."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import LayerSpec, Linear, Mean, Pool
from scaleproof.workloads.workload import ReferenceCounts, Workload

AUXILIARY = "auxiliary.fc"


def _pooled(blocks: Blocks, name: str, before: str, features: int) -> str:
    blocks.append(Pool(f"{name}.pool", 3, average=True, stride=1, pad="same", inputs=(before,)))
    return blocks.conv(f"{name}.conv", features, 1)


def _reduced(blocks: Blocks, name: str, before: str, features: int) -> str:
    return blocks.conv(name, features, 3, 2, pad=0, after=before)


def _grid35(blocks: Blocks, name: str, before: str, pooled: int) -> str:
    first = blocks.conv(f"{name}.b0", 64, 1, after=before)
    second = blocks.chain(f"{name}.b1", before, (48, 1), (64, 5))
    third = blocks.chain(f"{name}.b2", before, (64, 1), (96, 3), (96, 3))
    return blocks.concat(name, first, second, third, _pooled(blocks, f"{name}.b3", before, pooled))


def _grid17(blocks: Blocks, name: str, before: str, inner: int) -> str:
    first = blocks.conv(f"{name}.b0", 192, 1, after=before)
    second = blocks.chain(f"{name}.b1", before, (inner, 1), (inner, (1, 7)), (192, (7, 1)))
    third = blocks.chain(
        f"{name}.b2", before, (inner, 1), (inner, (7, 1)), (inner, (1, 7)), (inner, (7, 1)), (192, (1, 7))
    )
    return blocks.concat(name, first, second, third, _pooled(blocks, f"{name}.b3", before, 192))


def _grid8(blocks: Blocks, name: str, before: str) -> str:
    def forked(branch: str, after: str) -> str:
        sides = (
            blocks.conv(f"{branch}.wide", 384, (1, 3), after=after),
            blocks.conv(f"{branch}.high", 384, (3, 1), after=after),
        )
        return blocks.concat(branch, *sides)

    first = blocks.conv(f"{name}.b0", 320, 1, after=before)
    second = forked(f"{name}.b1", blocks.conv(f"{name}.b1.conv", 384, 1, after=before))
    third = forked(f"{name}.b2", blocks.chain(f"{name}.b2", before, (448, 1), (384, 3)))
    return blocks.concat(name, first, second, third, _pooled(blocks, f"{name}.b3", before, 192))


def _stem(blocks: Blocks) -> str:
    blocks.conv("conv1a", 32, 3, 2, pad=0)
    blocks.conv("conv2a", 32, 3, pad=0)
    blocks.conv("conv2b", 64, 3)
    blocks.append(Pool("pool3a", 3, stride=2))
    blocks.conv("conv3b", 80, 1)
    blocks.conv("conv4a", 192, 3, pad=0)
    return blocks.append(Pool("pool5a", 3, stride=2))


def _auxiliary(blocks: Blocks, before: str) -> None:
    """The auxiliary head. Its windows are cut to the size of small images, as in slim."""
    blocks.append(Pool("auxiliary.pool", 5, average=True, stride=3, fit=True, inputs=(before,)))
    blocks.conv("auxiliary.conv1", 128, 1)
    blocks.conv("auxiliary.conv2", 768, 5, pad=0, fit=True)
    blocks.append(Linear(AUXILIARY, 10, classifier=True))


def _inception_v3(classes: int, auxiliary: bool) -> list[LayerSpec]:
    blocks = Blocks(scale=False)
    last = _stem(blocks)
    for name, pooled in (("mixed5b", 32), ("mixed5c", 64), ("mixed5d", 64)):
        last = _grid35(blocks, name, last, pooled)
    deep = _reduced(blocks, "mixed6a.b1", blocks.chain("mixed6a.b1", last, (64, 1), (96, 3)), 96)
    shallow = _reduced(blocks, "mixed6a.b0", last, 384)
    last = blocks.concat("mixed6a", shallow, deep, blocks.append(Pool("mixed6a.b2", 3, stride=2, inputs=(last,))))
    for name, inner in (("mixed6b", 128), ("mixed6c", 160), ("mixed6d", 160), ("mixed6e", 192)):
        last = _grid17(blocks, name, last, inner)
    before_head = last
    deep = _reduced(blocks, "mixed7a.b1", blocks.chain("mixed7a.b1", last, (192, 1), (192, (1, 7)), (192, (7, 1))), 192)
    shallow = _reduced(blocks, "mixed7a.b0", blocks.conv("mixed7a.b0.conv", 192, 1, after=last), 320)
    last = blocks.concat("mixed7a", shallow, deep, blocks.append(Pool("mixed7a.b2", 3, stride=2, inputs=(last,))))
    for name in ("mixed7b", "mixed7c"):
        last = _grid8(blocks, name, last)
    if auxiliary:
        _auxiliary(blocks, before_head)
    blocks.append(Mean("mean", inputs=(last,)))
    blocks.append(Linear("fc", classes, classifier=True))
    return blocks.table


# as xue2019 counts it
inception_v3 = Workload(
    name="inception_v3",
    summary="Inception-v3 with auxiliary head, 3x299x299, 10 classes, 24.4 M parameters",
    input_shape=(3, 299, 299),
    smallest_side=75,
    layers=_inception_v3(10, auxiliary=True),
    auxiliary=AUXILIARY,
    reference=ReferenceCounts(
        weights=24_335_200,
        biases=18_132,
        forward_mac=5_716_111_456,
        source="TF-slim inception_v3 with 10 classes and auxiliary head, batch normalisation "
        "with offsets only; structure as in keras.applications.InceptionV3",
        provenance="memory_medium (size and tensors), derived (counts)",
        tensors=196,
        mib=92.9,
    ),
)

# as tf_cnn_benchmarks trains it (awan2019)
inception_v3_imagenet = Workload(
    name="inception_v3_imagenet",
    summary="Inception-v3 without auxiliary head, 3x299x299, 1001 classes, 23.8 M parameters",
    input_shape=(3, 299, 299),
    smallest_side=75,
    layers=_inception_v3(1001, auxiliary=False),
    reference=ReferenceCounts(
        weights=23_801_184,
        biases=18_217,
        forward_mac=5_713_218_144,
        source="tensorflow/benchmarks@9165a70, tf_cnn_benchmarks: inception3, normalised by offsets alone, 1001 "
        "classes; with 1000 classes keras.applications.InceptionV3 has the 23,817,352 trained values of these shapes",
        provenance="author_code (shapes), derived (counts)",
        tensors=190,
    ),
)

PLUGINS = (inception_v3, inception_v3_imagenet)
