"""One anonymous shared mapping per rank, seen by all ranks of the launch."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._allocator import Allocator
from scaleproof.transports.contract import Array
from scaleproof.transports.shm.private_memory import Consent, Counts, Peer, PrivateMemory, why_refused

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

HUGE_PAGE = 2 << 20
ADDRESS_SPACE = 64 << 40
"""Half of a process's address space, into which the memory of all ranks is mapped."""


class Arena:
    """The memory of all ranks, mapped in this process: `memory[r]` holds rank r's bytes. It is sparse, so that only
    touched pages take memory, and it has no name in a file system.

    The mapping comes from memfd_create and is opened through /proc/<pid>/fd, so the kernel frees it when the last rank
    has ended, however it ended. `private`: the ranks' other memory, where every rank may copy from and to every other;
    otherwise None, with the reason in `refused`.
    """

    def __init__(self, context: RankContext) -> None:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.nbytes = min(physical, ADDRESS_SPACE // context.world_size) // HUGE_PAGE * HUGE_PAGE
        descriptor = os.memfd_create("scaleproof", os.MFD_CLOEXEC)
        self.consent = Consent()
        try:
            os.ftruncate(descriptor, self.nbytes)
            processes = context.rendezvous.exchange(
                "shm.arena",
                context.rank,
                context.world_size,
                [os.getpid(), descriptor, _pid_namespace(), self.consent.offer],
            )
            self.pids = [pid for pid, _, _, _ in processes]
            for rank, (_, _, namespace, _) in enumerate(processes):
                if namespace == _pid_namespace():
                    continue
                host = namespace.partition("/")[0]
                raise TransportError(
                    f"shared memory ends at the node: rank {rank} runs on {host}, "
                    f"rank {context.rank} on {socket.gethostname()}"
                )
            self._opened: list[int] = []
            self._maps = [self._open(pid, fd) for pid, fd, _, _ in processes]
            peers = [Peer(rank, pid) for rank, pid in enumerate(self.pids)]
            refused = why_refused(peers, [offer for _, _, _, offer in processes])
            refusals = context.rendezvous.exchange("shm.mapped", context.rank, context.world_size, refused)
        finally:
            os.close(descriptor)
        self.memory = [np.frombuffer(area, np.uint8) for area in self._maps]
        self.words = [memoryview(area).cast("Q") for area in self._maps]
        self.refused = next((f"rank {rank}: {why}" for rank, why in enumerate(refusals) if why), "")
        self.private = None if self.refused else PrivateMemory(peers, Counts(calls=0, nbytes=0))
        self._one_thread = threading.Lock()
        self._allocator = Allocator(self._maps[context.rank], "shared memory")

    def _open(self, pid: int, descriptor: int) -> mmap.mmap:
        try:
            self._opened.append(os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR))
            area = mmap.mmap(self._opened[-1], self.nbytes)
        except OSError as error:
            raise TransportError(f"cannot map the memory of process {pid}: {error.strerror}") from error
        # A kernel without huge pages for shared memory serves small ones.
        area.madvise(mmap.MADV_HUGEPAGE)
        return area

    @contextmanager
    def exclusive(self, owner: int) -> Iterator[None]:
        """See Excluding.exclusive: the kernel's lock on the owner's memory, which a process that dies gives back."""
        with self._one_thread:
            fcntl.flock(self._opened[owner], fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._opened[owner], fcntl.LOCK_UN)

    def close(self) -> None:
        """Nobody is excluded any more; the memory stays mapped."""
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened = []

    def allocate(self, nbytes: int) -> Array:
        """See Allocator.allocate."""
        return self._allocator.allocate(nbytes)

    def offset(self, array: Array) -> int | None:
        """Offset of an array in this rank's memory; None if it is elsewhere."""
        return self._allocator.offset(array)


def _pid_namespace() -> str:
    """Host and process-id namespace: processes with an equal value see each other's process ids."""
    return f"{socket.gethostname()}/{os.stat('/proc/self/ns/pid').st_ino}"
