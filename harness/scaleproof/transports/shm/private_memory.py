"""One copy by the kernel between the private memories of two processes (process_vm_readv, process_vm_writev), for
buffers that lie outside of the shared memory.

The kernel asks for the permission to trace the other process: the same user, and where Yama restricts tracing the
consent of the process that is read. A container's seccomp filter may refuse the calls altogether. So every rank tries
both calls on every peer when it connects; if one is refused, all ranks use shared pieces.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
from collections.abc import Sequence
from ctypes import POINTER, c_int, c_size_t, c_ssize_t, c_ulong, c_void_p
from typing import Any, NamedTuple, TypedDict

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array, BufferUse

LEAST_NBYTES: dict[BufferUse, int] = {"message": 4 << 20, "collective": 1 << 20}
"""Smallest buffer that the kernel copies, in bytes: a compromise between machines (docs/benchmarks.md has both ways at
each size). A system call looks up every page, while shared pieces stay in the cache. For messages pieces are the faster
way up to a larger size: two cores copy at once, while in a collective both cores are busy anyway. From 4 MiB on NumPy
asks for huge pages, and the kernel has fewer pages to look up."""
_PR_SET_PTRACER = 0x59616D61
_libc = ctypes.CDLL(None, use_errno=True)


class IoVec(ctypes.Structure):
    """A range of addresses, as the kernel takes it."""

    _fields_ = (("base", c_void_p), ("nbytes", c_size_t))


class Peer(NamedTuple):
    """A rank of the transport and its process."""

    rank: int
    pid: int


class Counts(TypedDict):
    """What a rank's kernel copies have moved, as the record has it."""

    calls: int
    nbytes: int


def _system_call(name: str) -> Any:
    """A function of libc that releases the interpreter lock while it runs; None where libc lacks it."""
    function = getattr(_libc, name, None)
    if function is not None:
        function.argtypes = (c_int, POINTER(IoVec), c_ulong, POINTER(IoVec), c_ulong, c_ulong)
        function.restype = c_ssize_t
    return function


CALLS: dict[str, Any] = {name: _system_call(name) for name in ("process_vm_readv", "process_vm_writev")}


class KernelCopy:
    """A prepared copy between a local array and as many bytes at an address of a peer; calling it repeats the copy. The
    array must stay where it is."""

    __slots__ = ("_call", "_counts", "_local", "_name", "_peer", "_remote", "nbytes")

    def __init__(self, name: str, peer: Peer, address: int, local: Array, counts: Counts) -> None:
        self._name, self._call, self._peer, self._counts = name, CALLS[name], peer, counts
        self.nbytes = local.nbytes
        self._local, self._remote = IoVec(address_of(local), self.nbytes), IoVec(address, self.nbytes)

    def __call__(self, *_: Array) -> None:
        """Raises PeerLost when the peer has ended."""
        self._counts["calls"] += 1
        self._counts["nbytes"] += self.nbytes
        moved = self._call(self._peer.pid, self._local, 1, self._remote, 1, 0)
        if moved != self.nbytes:
            self._rest(moved)

    def _rest(self, moved: int) -> None:
        """The kernel may move fewer bytes than it was asked for."""
        done = 0
        while moved > 0:
            done += moved
            if done == self.nbytes:
                return
            local, remote = (IoVec(whole.base + done, self.nbytes - done) for whole in (self._local, self._remote))
            moved = self._call(self._peer.pid, local, 1, remote, 1, 0)
        number = ctypes.get_errno() if moved < 0 else errno.EFAULT
        if number == errno.ESRCH:
            raise PeerLost(self._peer.rank, f"rank {self._peer.rank} has ended before its memory was copied")
        raise TransportError(f"{self._name} of {self.nbytes} bytes and rank {self._peer.rank}: {os.strerror(number)}")


class PrivateMemory:
    """The private memories of the ranks of a transport, or of a part of them, read and written by the kernel."""

    def __init__(self, peers: Sequence[Peer], counts: Counts) -> None:
        self._peers, self.counts = tuple(peers), counts

    def suits(self, nbytes: int, use: BufferUse) -> bool:
        """Whether a buffer of this size is copied faster by the kernel than through shared pieces."""
        return nbytes >= LEAST_NBYTES[use]

    def reader(self, peer: int, address: int, target: Array) -> KernelCopy:
        """A copy from an address of a peer into an array of this rank."""
        return KernelCopy("process_vm_readv", self._peers[peer], address, target, self.counts)

    def writer(self, peer: int, address: int, source: Array) -> KernelCopy:
        """A copy from an array of this rank to an address of a peer."""
        return KernelCopy("process_vm_writev", self._peers[peer], address, source, self.counts)

    def part(self, members: Sequence[int]) -> PrivateMemory:
        """The memories of some ranks, in the order of their new numbers."""
        return PrivateMemory([self._peers[member] for member in members], self.counts)


class Consent:
    """This rank lets its siblings copy its private memory, and offers a word of it to try that on."""

    def __init__(self) -> None:
        # Yama takes one process, whose descendants may trace this one: the parent of all ranks.
        _libc.prctl(_PR_SET_PTRACER, c_ulong(os.getppid()), 0, 0, 0)
        self._word = (c_ulong * 1)(secrets.randbits(63))

    @property
    def offer(self) -> tuple[int, int]:
        """Address and content of the word."""
        return ctypes.addressof(self._word), self._word[0]

    def withdraw(self) -> None:
        """Siblings may no longer copy from and to this process."""
        _libc.prctl(_PR_SET_PTRACER, c_ulong(0), 0, 0, 0)


def why_refused(peers: Sequence[Peer], offers: Sequence[Sequence[int]]) -> str:
    """Reason why this rank cannot copy from or to one of the peers; empty if it can."""
    for peer, (address, content) in zip(peers, offers, strict=True):
        word = (c_ulong * 1)()
        for name, call in CALLS.items():
            if call is None:
                return f"libc has no {name}"
            local, remote = (IoVec(start, ctypes.sizeof(word)) for start in (ctypes.addressof(word), address))
            if call(peer.pid, local, 1, remote, 1, 0) != ctypes.sizeof(word):
                return f"{name} of rank {peer.rank}: {os.strerror(ctypes.get_errno())}"
            if word[0] != content:
                return f"{name} of rank {peer.rank} reached another process"
    return ""
