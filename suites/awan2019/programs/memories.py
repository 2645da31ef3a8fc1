"""All-reduce of an array in place over a ring, or on the host after a copy. The array may be on a GPU."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from scaleproof.transports.contract import Array, Collectives, PointToPoint


class Memory(Protocol):
    """Flat float32 elements in some memory; slices are copied to the host and back as NumPy arrays."""

    size: int

    def fetch(self, start: int, stop: int) -> Array:
        """Elements on the host: a view if they are there already, otherwise a copy."""

    def add(self, start: int, values: Array) -> None:
        """Add values to elements, in this memory."""

    def put(self, start: int, values: Array) -> None:
        """Replace elements."""


class HostMemory:
    """The emulation of a device: memory that can be reduced in place."""

    def __init__(self, array: Array) -> None:
        self.array, self.size = array, array.size

    def fetch(self, start: int, stop: int) -> Array:
        """See Memory."""
        return self.array[start:stop]

    def add(self, start: int, values: Array) -> None:
        """See Memory."""
        self.array[start : start + values.size] += values

    def put(self, start: int, values: Array) -> None:
        """See Memory."""
        np.copyto(self.array[start : start + values.size], values)


class CudaMemory:
    """A torch tensor on a GPU; sums are the GPU's own kernels."""

    def __init__(self, tensor: Any, from_numpy: Any) -> None:
        self.tensor, self.size, self._from_numpy = tensor, tensor.numel(), from_numpy

    def fetch(self, start: int, stop: int) -> Array:
        """See Memory."""
        elements: Array = self.tensor[start:stop].cpu().numpy()
        return elements

    def add(self, start: int, values: Array) -> None:
        """See Memory."""
        self.tensor[start : start + values.size] += self._from_numpy(values).to(self.tensor.device)

    def put(self, start: int, values: Array) -> None:
        """See Memory."""
        self.tensor[start : start + values.size] = self._from_numpy(values).to(self.tensor.device)


def reduce_where_it_lies(transport: PointToPoint, memory: Memory, scratch: Array) -> None:
    """Ring reduce-scatter, then ring all-gather. `scratch`: receive buffer for a block of ceil(size / ranks)
    float32."""
    ranks, rank = transport.world_size, transport.rank
    edges = [memory.size * part // ranks for part in range(ranks + 1)]
    for turn in range(2 * (ranks - 1)):
        reducing = turn < ranks - 1
        shift = turn if reducing else turn - ranks
        outgoing, incoming = ((rank - shift - other) % ranks for other in (0, 1))
        arriving = scratch[: edges[incoming + 1] - edges[incoming]]
        receiving = transport.recv(arriving, (rank - 1) % ranks)
        sending = transport.send(
            np.ascontiguousarray(memory.fetch(edges[outgoing], edges[outgoing + 1])), (rank + 1) % ranks
        )
        receiving.wait()
        sending.wait()
        if reducing:
            memory.add(edges[incoming], arriving)
        else:
            memory.put(edges[incoming], arriving)


def reduce_on_the_host(group: Collectives, memory: Memory, staging: Array) -> None:
    """Copy everything to the host, all-reduce it there, copy it back."""
    np.copyto(staging, memory.fetch(0, memory.size))
    group.all_reduce(staging).wait()
    memory.put(0, staging)
