"""An array that is reduced where it lies, over a ring, or on the host after a copy there. The array may be a GPU's."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from scaleproof.transports.contract import Array, Collectives, PointToPoint


class Memory(Protocol):
    """Flat float32 elements somewhere; slices cross to the host and back as NumPy arrays."""

    size: int

    def fetch(self, start: int, stop: int) -> Array:
        """Elements on the host: a view where they lie there already, else a copy."""

    def add(self, start: int, given: Array) -> None:
        """Add elements, where the memory is."""

    def put(self, start: int, given: Array) -> None:
        """Replace elements."""


class HostMemory:
    """The emulation of a device: memory that can be reduced in place."""

    def __init__(self, array: Array) -> None:
        self.array, self.size = array, array.size

    def fetch(self, start: int, stop: int) -> Array:
        """See Memory."""
        return self.array[start:stop]

    def add(self, start: int, given: Array) -> None:
        """See Memory."""
        self.array[start : start + given.size] += given

    def put(self, start: int, given: Array) -> None:
        """See Memory."""
        np.copyto(self.array[start : start + given.size], given)


class CudaMemory:
    """A torch tensor on a GPU; sums are the GPU's own kernels."""

    def __init__(self, tensor: Any, from_numpy: Any) -> None:
        self.tensor, self.size, self._from_numpy = tensor, tensor.numel(), from_numpy

    def fetch(self, start: int, stop: int) -> Array:
        """See Memory."""
        found: Array = self.tensor[start:stop].cpu().numpy()
        return found

    def add(self, start: int, given: Array) -> None:
        """See Memory."""
        self.tensor[start : start + given.size] += self._from_numpy(given).to(self.tensor.device)

    def put(self, start: int, given: Array) -> None:
        """See Memory."""
        self.tensor[start : start + given.size] = self._from_numpy(given).to(self.tensor.device)


def reduce_where_it_lies(transport: PointToPoint, memory: Memory, scratch: Array) -> None:
    """Ring reduce-scatter, then ring all-gather; `scratch` takes what arrives, a block of ceil(size / ranks)
    float32."""
    ranks, rank = transport.world_size, transport.rank
    edges = [memory.size * part // ranks for part in range(ranks + 1)]
    for turn in range(2 * (ranks - 1)):
        reducing = turn < ranks - 1
        shift = turn if reducing else turn - ranks
        given, taken = ((rank - shift - other) % ranks for other in (0, 1))
        arriving = scratch[: edges[taken + 1] - edges[taken]]
        receiving = transport.recv(arriving, (rank - 1) % ranks)
        sending = transport.send(np.ascontiguousarray(memory.fetch(edges[given], edges[given + 1])), (rank + 1) % ranks)
        receiving.wait()
        sending.wait()
        if reducing:
            memory.add(edges[taken], arriving)
        else:
            memory.put(edges[taken], arriving)


def reduce_on_the_host(group: Collectives, memory: Memory, staging: Array) -> None:
    """Copy everything to the host, all-reduce it there, copy it back."""
    np.copyto(staging, memory.fetch(0, memory.size))
    group.all_reduce(staging).wait()
    memory.put(0, staging)
