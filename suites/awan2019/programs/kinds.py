"""What kind of memory a pointer points to, and the pointer cache of awan2019: an address range is asked about once,
until it is freed."""

from __future__ import annotations

import bisect
import ctypes
import time
from dataclasses import dataclass
from typing import Any, Protocol

CU_MEMORY_TYPE, CU_RANGE_START, CU_RANGE_SIZE = 2, 11, 12
"""Of cuPointerGetAttribute (CUDA driver, CUpointer_attribute)."""
CU_DEVICE = 2
"""CU_MEMORYTYPE_DEVICE."""


@dataclass(frozen=True, slots=True)
class Known:
    """An address range [start, stop) and its kind, 'host' or 'device'."""

    start: int
    stop: int
    kind: str


class Driver(Protocol):
    """Who knows the kinds."""

    def query(self, address: int, nbytes: int) -> Known:
        """The allocation around an address, as far as it is known; else exactly the bytes asked about."""


class EmulatedDriver:
    """No driver: everything is host memory, and a query takes a fixed time, spent spinning. Whatever rests on that time
    is an emulation."""

    def __init__(self, query_us: float) -> None:
        self._ns = round(query_us * 1000)

    def query(self, address: int, nbytes: int) -> Known:
        """See Driver."""
        end = time.perf_counter_ns() + self._ns
        while time.perf_counter_ns() < end:
            pass
        return Known(address, address + nbytes, "host")


class CudaDriver:
    """The CUDA driver's own attributes of a pointer; memory that it does not know is the host's."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def query(self, address: int, nbytes: int) -> Known:
        """See Driver."""
        if self._attribute(CU_MEMORY_TYPE, address) != CU_DEVICE:
            return Known(address, address + nbytes, "host")
        start, size = self._attribute(CU_RANGE_START, address), self._attribute(CU_RANGE_SIZE, address)
        return Known(start or address, (start or address) + (size or nbytes), "device")

    def _attribute(self, number: int, address: int) -> int | None:
        value = ctypes.c_uint64(0)
        failed = self._library.cuPointerGetAttribute(ctypes.byref(value), number, ctypes.c_uint64(address))
        return None if failed else value.value


class Kinds:
    """Answers for every message; `queries` counts how often the driver was asked."""

    def __init__(self, driver: Driver, cached: bool) -> None:
        self._driver, self._cached = driver, cached
        self._starts: list[int] = []
        self._known: list[Known] = []
        self.queries = 0

    def of(self, address: int, nbytes: int) -> str:
        """Kind of the bytes [address, address + nbytes)."""
        if self._cached and (known := self._find(address, nbytes)):
            return known.kind
        self.queries += 1
        found = self._driver.query(address, nbytes)
        if self._cached:
            self.freed(found.start, found.stop - found.start)  # what overlaps is older
            place = bisect.bisect(self._starts, found.start)
            self._starts.insert(place, found.start)
            self._known.insert(place, found)
        return found.kind

    def freed(self, address: int, nbytes: int) -> None:
        """The bytes were given back: whatever lies there next may be of another kind."""
        kept = [known for known in self._known if known.stop <= address or known.start >= address + max(nbytes, 1)]
        if len(kept) < len(self._known):
            self._known, self._starts = kept, [known.start for known in kept]

    def _find(self, address: int, nbytes: int) -> Known | None:
        place = bisect.bisect(self._starts, address) - 1
        if place < 0 or address + nbytes > self._known[place].stop:
            return None
        return self._known[place]
