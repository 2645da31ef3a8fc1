"""The layout of every rank's region. All ranks compute the same plan from the same edges, so they need not exchange
addresses later."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from scaleproof.remote.tensor_channel import Edge, NotStatic
from scaleproof.transports._buffers import CACHE_LINE, address_of
from scaleproof.transports.contract import Array

WORD = 8
PAGE = 4096
DIMENSIONS = 8
"""Most dimensions of a tensor that describes itself."""
DTYPES = (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
)
"""Types of tensors; a description holds the index in this tuple."""
DESCRIPTION = 2 + DIMENSIONS
"""Words of a description: type, number of dimensions, dimensions."""


class Plan:
    """Offsets by rank and name; `nbytes` is what every rank registers."""

    def __init__(self, ranks: int) -> None:
        self._ends = [0] * ranks
        self._offsets: dict[tuple[int, Hashable], int] = {}

    def reserve(self, rank: int, name: Hashable, nbytes: int) -> None:
        """Reserve whole cache lines, aligned to a page for at least a page of bytes (a copy between addresses of equal
        alignment is the fastest). A name that exists keeps its offset."""
        if (rank, name) not in self._offsets:
            start = self._offsets[rank, name] = rounded(self._ends[rank], PAGE if nbytes >= PAGE else CACHE_LINE)
            self._ends[rank] = start + max(nbytes, 1)

    def offset(self, rank: int, name: Hashable) -> int:
        """Offset of a reservation in the rank's region, in bytes."""
        return self._offsets[rank, name]

    @property
    def nbytes(self) -> int:
        """Bytes of the largest rank's region."""
        return rounded(max(self._ends), CACHE_LINE)


def rounded(nbytes: int, unit: int = WORD) -> int:
    """The next multiple of a unit."""
    return -(-nbytes // unit) * unit


def view(memory: Array, offset: int, shape: tuple[int, ...], dtype: str) -> Array:
    """A tensor's view of bytes."""
    kind = np.dtype(dtype)
    return memory[offset : offset + math.prod(shape) * kind.itemsize].view(kind).reshape(shape)


def same_memory(array: Array, other: Array) -> bool:
    """Whether a C-contiguous array begins where another does."""
    return array.flags.c_contiguous and address_of(array) == address_of(other)


def own_tensor(edge: Edge) -> Array:
    """A tensor outside of any region, aligned to a cache line, with all its pages touched."""
    memory = np.zeros(edge.nbytes + CACHE_LINE, np.uint8)
    return view(memory, -memory.ctypes.data % CACHE_LINE, edge.shape, edge.dtype)


def describe(shape: Sequence[int], dtype: str) -> list[int]:
    """The words that describe a tensor to its receiver. Raises NotStatic for a tensor that cannot be described."""
    if len(shape) > DIMENSIONS or dtype not in DTYPES:
        raise NotStatic(
            f"a tensor of {len(shape)} dimensions and type {dtype} cannot be described: "
            f"at most {DIMENSIONS} dimensions of {', '.join(DTYPES)}"
        )
    return [DTYPES.index(dtype), len(shape), *shape, *[0] * (DIMENSIONS - len(shape))]


def described(description: Sequence[int]) -> tuple[tuple[int, ...], str]:
    """Shape and type of a description."""
    return tuple(int(size) for size in description[2 : 2 + int(description[1])]), DTYPES[int(description[0])]


def check_shape(edge: Edge, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Raises NotStatic for a tensor that its edge does not allow."""
    if edge.static:
        fits = shape == edge.shape
    else:
        pairs = zip(shape, edge.shape, strict=False)
        fits = len(shape) == len(edge.shape) and all(size <= limit for size, limit in pairs)
    if not fits or dtype != edge.dtype:
        promise = "always" if edge.static else "at most"
        raise NotStatic(
            f"edge {edge.name!r} has {promise} shape {edge.shape} of {edge.dtype}; "
            f"this tensor has {shape} of {dtype.name}"
        )


def require_static(edges: Sequence[Edge], mechanism: str) -> None:
    """Raises NotStatic when a mechanism that places tensors in advance gets an edge whose shape varies."""
    for edge in edges:
        if not edge.static:
            raise NotStatic(
                f"mechanism {mechanism!r} places tensors in advance and cannot carry edge {edge.name!r}, "
                "whose shape varies; use 'dynamic'"
            )
