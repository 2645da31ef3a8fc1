"""One anonymous shared mapping per rank, seen by all ranks of the launch, and the allocator inside the own one."""

from __future__ import annotations

import bisect
import mmap
import os
import weakref
from typing import TYPE_CHECKING

import numpy as np

from harness.transports.base import Array, TransportError

if TYPE_CHECKING:
    from harness.rank.context import RankContext

LINE = 64
"""Bytes of a cache line: what two ranks write lies on different ones."""
PAGE = 4096
HUGE_PAGE = 2 << 20
ADDRESSES = 64 << 40
"""Half of what a process can address: all ranks' memories are mapped in each."""


class Arena:
    """Every rank's memory, mapped here: `memory[r]` are rank r's bytes. Sparse: only what is touched takes memory, and nothing has a name.

    The mapping comes from memfd_create and is reached through /proc/<pid>/fd, so the kernel frees it when the last rank is gone, however it ends.
    """

    def __init__(self, context: RankContext) -> None:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.nbytes = min(physical, ADDRESSES // context.world_size) // HUGE_PAGE * HUGE_PAGE
        descriptor = os.memfd_create("scaleproof", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, self.nbytes)
            known = context.rendezvous.exchange("shm.arena", context.rank, context.world_size, [os.getpid(), descriptor])
            self.pids = [pid for pid, _ in known]
            self._maps = [self._open(pid, fd) for pid, fd in known]
            context.rendezvous.exchange("shm.mapped", context.rank, context.world_size, True)
        finally:
            os.close(descriptor)
        self.memory = [np.frombuffer(area, np.uint8) for area in self._maps]
        self.words = [memoryview(area).cast("Q") for area in self._maps]
        self._own = self._maps[context.rank]
        self._address = self.memory[context.rank].ctypes.data
        self._free = [(0, self.nbytes)]

    def _open(self, pid: int, descriptor: int) -> mmap.mmap:
        try:
            opened = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR)
            try:
                area = mmap.mmap(opened, self.nbytes)
            finally:
                os.close(opened)
        except OSError as error:
            raise TransportError(f"cannot map the memory of process {pid}: {error.strerror}") from error
        # A kernel without huge pages for shared memory serves small ones.
        area.madvise(mmap.MADV_HUGEPAGE)
        return area

    def allocate(self, nbytes: int) -> Array:
        """Bytes of the own memory, not zeroed when used before; they are free again when the last view of them is gone."""
        size = max(-(-nbytes // PAGE), 1) * PAGE
        for index, (start, stop) in enumerate(self._free):
            if stop - start >= size:
                self._free[index : index + 1] = [(start + size, stop)] if stop - start > size else []
                block = _Block(self._own, self._address + start, nbytes)
                weakref.finalize(block, self._release, start, start + size)
                return np.asarray(block)
        raise TransportError(f"no {nbytes} contiguous bytes are left in the shared memory of this rank")

    def _release(self, start: int, stop: int) -> None:
        index = bisect.bisect(self._free, (start, stop))
        if index < len(self._free) and self._free[index][0] == stop:
            stop = self._free.pop(index)[1]
        if index > 0 and self._free[index - 1][1] == start:
            start = self._free.pop(index - 1)[0]
            index -= 1
        self._free.insert(index, (start, stop))

    def offset(self, array: Array) -> int | None:
        """Where an array lies in the own memory; None when it lies elsewhere."""
        offset = array.__array_interface__["data"][0] - self._address
        return offset if offset >= 0 and offset + array.nbytes <= self.nbytes else None


class _Block:
    """Owner of an allocation: NumPy keeps it alive as the base of every view, and it keeps the mapping alive."""

    def __init__(self, area: mmap.mmap, address: int, nbytes: int) -> None:
        self._area = area
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}


def as_bytes(array: Array) -> Array:
    """The bytes of a C-contiguous array, flat."""
    if not array.flags.c_contiguous:
        raise TransportError("a buffer must be C-contiguous")
    return array.reshape(-1).view(np.uint8)
