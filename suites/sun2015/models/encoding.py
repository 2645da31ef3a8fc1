"""Pairs and bytes of a step by formulas. The encoding is that of PySpark 4: lists of pairs (int, float), pickled with
protocol 5 in batches, one for each reducer, which Spark writes as they are where `spark.shuffle.compress` is off."""

from __future__ import annotations

import math

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published
from scaleproof.claims.metrics import Metric

FLOAT = 9
"""Bytes of a float: BINFLOAT and 8 bytes."""
TUPLE = 2
"""Of a pair: TUPLE2 and MEMOIZE."""
BATCH = 16
"""Of a list beside its pairs: PROTO, FRAME, EMPTY_LIST, MEMOIZE, MARK, APPENDS and STOP."""
FIRST_BATCH, LARGEST_FIRST, GROWTH = 10, 1000, 1.5
"""The first batch has more than 10 pairs for each reducer, at most 1000; a later one half as many more."""
GIB = 1 << 30


def key_bytes(key: int) -> int:
    """BININT1, BININT2 or BININT."""
    if key < 1 << 8:
        return 2
    return 3 if key < 1 << 16 else 5


def keys_bytes(size: int) -> int:
    """Of all keys from 0 to size - 1."""
    one, two = min(size, 1 << 8), min(size, 1 << 16)
    return 2 * one + 3 * (two - one) + 5 * (size - two)


def weights_bytes(size: int) -> int:
    """Of a pair for each of so many weights."""
    return keys_bytes(size) + size * (FLOAT + TUPLE)


def batches(pairs: int, reducers: int) -> int:
    """Lists that a map of so many pairs writes, empty ones left out."""
    least, left, written = float(min(FIRST_BATCH * reducers, LARGEST_FIRST)), pairs, 0
    while left > 0:
        taken = min(math.floor(least) + 1, left)
        written += min(reducers, taken)
        left -= taken
        least *= GROWTH
    return written


def map_pairs(images: int, size: int, combined: bool) -> int:
    """That one map hands on."""
    return size * min(images, 1) if combined else size * images


def map_bytes(images: int, size: int, combined: bool, reducers: int) -> int:
    """That one map writes."""
    times = min(images, 1) if combined else images
    return times * weights_bytes(size) + BATCH * batches(map_pairs(images, size, combined), reducers)


def shares(images: int, maps: int) -> list[int]:
    """Images of each map, as even as whole numbers allow. SparkContext.parallelize divides a list in batches of
    images // maps: these are its maps where the images divide, and the program refuses other numbers."""
    return [images * (number + 1) // maps - images * number // maps for number in range(maps)]


def weights_of(layers: str) -> list[int]:
    """Weights between each two layers of a text like 64-100-30."""
    units = [int(part) for part in layers.split("-")]
    return [below * above for below, above in zip(units, units[1:], strict=False)]


class OfEpoch(Arguments):
    """An epoch of all layers, one step each."""

    layers: str = Field(pattern=r"^[1-9]\d*(-[1-9]\d*)+$", description="Units of each layer, as 784-1000-300.")
    records: Count = Field(description="Records of an epoch.")
    maps: Count = Field(1, description="Maps, with as even shares of the records as whole numbers allow.")
    combined: bool = Field(False, description="Whether a map adds up its records before it hands on pairs.")
    reducers: Count = Field(1, description="Reducers.")


def intermediate_pairs(x: OfEpoch, _rows: Published) -> float:
    """Pairs of weight and delta that the maps of an epoch of all layers hand on (suite sun2015).

    intermediate_pairs = sum over layers of weights x (combined: maps; else: records)

    The authors' mapper emits a pair for each weight of each record, and no combiner is set.
    """
    times = x.maps if x.combined else x.records
    return float(sum(weights_of(x.layers)) * times)


def shuffled_gib(x: OfEpoch, _rows: Published) -> float:
    """Bytes that the maps of an epoch write in PySpark's encoding, in GiB (suite sun2015).

    shuffled_gib = sum over layers and maps of (9 + 2 + key) bytes per pair, and 16 per batch; key: 2 below 256, 3 below
    65536, else 5

    [shuffle_error](shuffle_error.md) says how far that is from what Spark counts at the size that runs.
    """
    divided = shares(x.records, x.maps)
    kinds = {images: divided.count(images) for images in set(divided)}
    layers = weights_of(x.layers)
    return (
        sum(
            count * map_bytes(images, size, x.combined, x.reducers)
            for images, count in kinds.items()
            for size in layers
        )
        / GIB
    )


def sort_comparisons(x: OfEpoch, _rows: Published) -> float:
    """Comparisons that sorting an epoch's pairs by key takes, as Hadoop does before it reduces (suite sun2015).

    sort_comparisons = sum over layers of n log2(n / maps), n the pairs of the layer: each map sorts what it hands on

    Merging at the reducers comes on top: n log2(maps). A combiner of Hadoop gets what a map has sorted, so it saves
    bytes and no comparisons; adding up in the mapper saves both.
    """
    times = x.maps if x.combined else x.records
    found = [size * times for size in weights_of(x.layers)]
    return sum(pairs * math.log2(pairs / x.maps) for pairs in found)


METRICS = [
    Metric("intermediate_pairs", "pairs", "lower", model=intermediate_pairs, x=OfEpoch),
    Metric("shuffled_gib", "GiB", "lower", model=shuffled_gib, x=OfEpoch),
    Metric("sort_comparisons", "comparisons", "lower", model=sort_comparisons, x=OfEpoch),
]
