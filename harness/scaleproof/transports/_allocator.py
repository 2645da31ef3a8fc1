"""An allocator inside one large block of memory that a rank shares with its peers: first fit, whole pages. An
allocation is freed with the last view of its array."""

from __future__ import annotations

import bisect
import mmap
import weakref

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports.contract import Array

PAGE = 4096


class RegionExhausted(TransportError):
    """No free part of the rank's memory is large enough."""

    code = "region_exhausted"


class Allocator:
    """Allocates arrays inside a mapping or a view of one. `name`: name of the memory in error messages."""

    def __init__(self, area: mmap.mmap | memoryview, name: str) -> None:
        self.nbytes = len(area)
        self.name = name
        self._area = area
        self.address = int(np.frombuffer(area, np.uint8).ctypes.data)
        self._free = [(0, self.nbytes)]

    def allocate(self, nbytes: int) -> Array:
        """A flat uint8 array of `nbytes`, not zeroed. Its bytes are free again when its last view is gone. Raises
        RegionExhausted."""
        size = max(-(-nbytes // PAGE), 1) * PAGE
        for index, (start, stop) in enumerate(self._free):
            if stop - start >= size:
                self._free[index : index + 1] = [(start + size, stop)] if stop - start > size else []
                block = _Block(self._area, self.address + start, nbytes)
                weakref.finalize(block, self._release, start, start + size)
                return np.asarray(block)
        largest = max((stop - start for start, stop in self._free), default=0)
        raise RegionExhausted(
            f"no {nbytes} contiguous bytes are left in the {self.name} of {self.nbytes} bytes; "
            f"the largest free piece has {largest}"
        )

    def offset(self, array: Array) -> int | None:
        """Offset of an array in the memory, in bytes; None if it is elsewhere."""
        offset = int(array.__array_interface__["data"][0]) - self.address
        return offset if offset >= 0 and offset + array.nbytes <= self.nbytes else None

    def _release(self, start: int, stop: int) -> None:
        index = bisect.bisect(self._free, (start, stop))
        if index < len(self._free) and self._free[index][0] == stop:
            stop = self._free.pop(index)[1]
        if index > 0 and self._free[index - 1][1] == start:
            start = self._free.pop(index - 1)[0]
            index -= 1
        self._free.insert(index, (start, stop))


class _Block:
    """Owner of an allocation: NumPy keeps it alive as the base of every view, and it keeps the mapping alive."""

    def __init__(self, area: mmap.mmap | memoryview, address: int, nbytes: int) -> None:
        self._area = area
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}
