"""Gradients packed into flat buffers, in the order in which the backward pass finishes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

ITEM = 4
"""Bytes of a float32 gradient element."""
ALIGN = 16
"""Elements in a cache line of 64 bytes. Each gradient starts on a cache line, so that no two gradients share one; the
gaps are zero."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Name and size of a parameter."""

    name: str
    elements: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """One buffer that is exchanged in one call."""

    buffer: np.ndarray
    """float32, flat."""
    members: tuple[int, ...]
    """Indices of its parameters, in the order of the backward pass."""

    @property
    def nbytes(self) -> int:
        """Bytes that one exchange moves."""
        return int(self.buffer.nbytes)


def plan(parameters: Sequence[Parameter], limit_nbytes: float) -> list[list[int]]:
    """Parameter indices of each bucket, from the last parameter to the first. A bucket is closed when it reaches the
    limit, as in torch's DDP."""
    groups: list[list[int]] = []
    filled = limit_nbytes
    for index in reversed(range(len(parameters))):
        if filled >= limit_nbytes:
            groups.append([])
            filled = 0
        groups[-1].append(index)
        filled += _padded(parameters[index].elements) * ITEM
    return groups


def allocate(
    parameters: Sequence[Parameter], limit_nbytes: float, memory: Callable[[int], np.ndarray], parts: int = 1
) -> tuple[list[Bucket], list[np.ndarray]]:
    """Buckets in exchange order, and one flat gradient view per parameter. `memory(nbytes)` allocates uint8 arrays, in
    the transport's memory if it has any. A bucket is divisible into `parts` equal parts."""
    buckets, views = [], [np.empty(0, np.float32)] * len(parameters)
    for members in plan(parameters, limit_nbytes):
        total = -(-sum(_padded(parameters[index].elements) for index in members) // parts) * parts
        buffer = memory(total * ITEM).view(np.float32)
        buffer.fill(0)
        offset = 0
        for index in members:
            views[index] = buffer[offset : offset + parameters[index].elements]
            offset += _padded(parameters[index].elements)
        buckets.append(Bucket(buffer, tuple(members)))
    return buckets, views


def _padded(elements: int) -> int:
    return -(-elements // ALIGN) * ALIGN
