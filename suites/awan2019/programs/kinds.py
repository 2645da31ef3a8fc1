"""The kind of memory that a pointer points to, and the pointer cache of awan2019: the driver is queried once for an
address range, until the range is freed."""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

CU_MEMORY_TYPE, CU_RANGE_START, CU_RANGE_SIZE = 2, 11, 12
"""Attributes of cuPointerGetAttribute (CUDA driver, CUpointer_attribute)."""
CU_DEVICE = 2
"""CU_MEMORYTYPE_DEVICE."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """An address range [start, stop) and its kind, 'host' or 'device'."""

    start: int
    stop: int
    kind: str


class Driver(Protocol):
    """Knows the kind of memory at an address."""

    def query(self, address: int, nbytes: int) -> Allocation:
        """The allocation around an address if it is known, otherwise exactly the queried bytes."""


class EmulatedDriver:
    """No driver: all memory is host memory, and a query takes a stated time, which `spend` lets pass."""

    def __init__(self, spend: Callable[[], None]) -> None:
        self._spend = spend

    def query(self, address: int, nbytes: int) -> Allocation:
        """See Driver."""
        self._spend()
        return Allocation(address, address + nbytes, "host")


class CudaDriver:
    """The CUDA driver's attributes of a pointer; memory that the driver does not know is host memory."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def query(self, address: int, nbytes: int) -> Allocation:
        """See Driver."""
        if self._attribute(CU_MEMORY_TYPE, address) != CU_DEVICE:
            return Allocation(address, address + nbytes, "host")
        start, size = self._attribute(CU_RANGE_START, address), self._attribute(CU_RANGE_SIZE, address)
        return Allocation(start or address, (start or address) + (size or nbytes), "device")

    def _attribute(self, number: int, address: int) -> int | None:
        value = ctypes.c_uint64(0)
        failed = self._library.cuPointerGetAttribute(ctypes.byref(value), number, ctypes.c_uint64(address))
        return None if failed else value.value


class Kinds:
    """Returns the kind of every message's buffer; `queries` counts queries of the driver."""

    def __init__(self, driver: Driver, cached: bool) -> None:
        self._driver, self._cached = driver, cached
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self.queries = 0

    def of(self, address: int, nbytes: int) -> str:
        """Kind of the bytes [address, address + nbytes)."""
        if self._cached and (cached := self._find(address, nbytes)):
            return cached.kind
        self.queries += 1
        allocation = self._driver.query(address, nbytes)
        if self._cached:
            self.freed(allocation.start, allocation.stop - allocation.start)  # overlapping entries are outdated
            index = bisect.bisect(self._starts, allocation.start)
            self._starts.insert(index, allocation.start)
            self._allocations.insert(index, allocation)
        return allocation.kind

    def freed(self, address: int, nbytes: int) -> None:
        """The bytes were freed: the next allocation there may be of another kind."""
        end = address + max(nbytes, 1)
        remaining = [known for known in self._allocations if known.stop <= address or known.start >= end]
        if len(remaining) < len(self._allocations):
            self._allocations, self._starts = remaining, [allocation.start for allocation in remaining]

    def _find(self, address: int, nbytes: int) -> Allocation | None:
        index = bisect.bisect(self._starts, address) - 1
        if index < 0 or address + nbytes > self._allocations[index].stop:
            return None
        return self._allocations[index]
