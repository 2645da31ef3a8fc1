"""Our own shared memory: one-sided writes and reads into regions of other ranks, and flags to poll (the device
interface of xue2019).

Send and receive are built on it: the sender publishes descriptors (offset, size) in its own memory, the receiver copies
the bytes and acknowledges. The bytes of a buffer from `allocate` are copied directly. Of others, large ones are copied
once by the kernel where it lets ranks do so (private_memory.py), else they go through staging slots, chunk by chunk.

Memory order: on x86-64 stores become visible in program order and loads are done in program order (TSO), an aligned
8-byte store is atomic, and memcpy ends streaming stores with a fence. So a rank that has seen a counter also sees all
bytes that were written before the counter was published.
"""

from __future__ import annotations

import os
import platform
import select
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.spec.plugins import ONE_SIDED_MAILBOX, TransportPlugin
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import CACHE_LINE, address_of, as_bytes
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, wait_until
from scaleproof.transports.contract import (
    REAL_DTYPES,
    UFUNCS,
    Array,
    Capabilities,
    Done,
    Handle,
    ReduceOperation,
    Reducing,
    Region,
    Traffic,
)
from scaleproof.transports.shm.arena import Arena
from scaleproof.transports.shm.mapped_region import MappedRegion
from scaleproof.transports.shm.private_memory import LEAST_NBYTES
from scaleproof.transports.shm.shm_messages import HALF_BYTES, PRIVATE, Channel, Receive, Send

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class SharedMemory:
    """Ranks of one machine and one process-id namespace. The caller drives progress inside `wait` and `test`."""

    capabilities = Capabilities(
        point_to_point=True,
        one_sided=True,
        collective=False,
        dtypes=REAL_DTYPES,
        progress="caller",
        path="shared memory",
        library="scaleproof shm",
    )

    def __init__(self, context: RankContext, arena: Arena) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        self.arena = arena
        self._rendezvous = context.rendezvous
        self._regions = 0
        self._registered: dict[int, Array] = {}
        self._peers = [os.pidfd_open(pid) for pid in arena.pids]
        self.private_memory = arena.private
        context.facts["plain_buffers"] = (
            {"way": "shared pieces", "refused": arena.refused}
            if arena.private is None
            else {"way": "kernel copies", "least_nbytes": dict(LEAST_NBYTES), "copied": arena.private.counts}
        )
        channels = arena.allocate(HALF_BYTES * self.world_size)
        channels[:] = 0
        base = [start + self.rank * HALF_BYTES for start in self._exchange_offset("channels", channels)]
        own = [base[self.rank] + (peer - self.rank) * HALF_BYTES for peer in range(self.world_size)]
        self._channels = channels
        self._out = [Channel(arena, self.rank, own[peer], peer, base[peer]) for peer in range(self.world_size)]
        self._in = [Channel(arena, peer, base[peer], self.rank, own[peer]) for peer in range(self.world_size)]
        self._sends: list[deque[Send]] = [deque() for _ in range(self.world_size)]
        self._receives: list[deque[Receive]] = [deque() for _ in range(self.world_size)]
        self._blocks = [partial(self.wait_for, peer=peer) for peer in range(self.world_size)]
        self._spins = CROWDED_SPINS if self.world_size > len(os.sched_getaffinity(0)) else SPINS

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """Map every rank's memory; raises TransportError where the memory order above does not hold or a peer cannot be
        reached."""
        if platform.machine() != "x86_64":
            raise TransportError(f"transport shm needs an x86-64 processor, this is {platform.machine()}")
        return cls(context, Arena(context))

    def allocate(self, nbytes: int) -> Array:
        """Bytes in this rank's shared memory, which peers can access without staging."""
        return self.arena.allocate(nbytes)

    def locate(self, buffer: Array) -> int | None:
        """See Mapped.locate."""
        return self.arena.offset(buffer)

    def memory(self, rank: int) -> Array:
        """See Mapped.memory."""
        return self.arena.memory[rank]

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        address = self.arena.offset(buffer)
        if address is None and self.private_memory is not None and self.private_memory.suits(buffer.nbytes, "message"):
            address = PRIVATE | address_of(buffer)
        send = Send(self._out[peer], buffer, address, self.advance, self._blocks[peer])
        self._sends[peer].append(send)
        self.advance()
        return send

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self._receive(buffer, peer, None)

    def recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        """Like `recv`, but the bytes are reduced into the buffer as they arrive."""
        return self._receive(buffer, peer, UFUNCS[operation])

    def register(self, nbytes: int) -> Region:
        """See OneSided.register; flags are in front of the bytes, one cache line per writer."""
        memory = self.arena.allocate(self.world_size * CACHE_LINE + nbytes)
        memory[:] = 0
        starts = self._exchange_offset(f"region-{self._regions}", memory)
        self._regions += 1
        self._registered[starts[self.rank] + self.world_size * CACHE_LINE] = memory
        return MappedRegion(
            self.rank,
            starts[self.rank] + self.world_size * CACHE_LINE,
            nbytes,
            memory[self.world_size * CACHE_LINE :],
            starts,
        )

    def deregister(self, region: Region) -> None:
        """See OneSided.deregister; the memory is freed with the last array in it."""
        del self._registered[region.offset]
        region.local = None

    def remote(self, region: Region, peer: int) -> Region:
        """See OneSided.remote; `local` is the peer's memory, mapped here."""
        assert isinstance(region, MappedRegion)
        offset = region.starts[peer] + self.world_size * CACHE_LINE
        return MappedRegion(
            peer, offset, region.nbytes, self.arena.memory[peer][offset : offset + region.nbytes], region.starts
        )

    def expose(self, nbytes: int) -> Region:
        """See ExposesMemory.expose."""
        memory = self.arena.allocate(nbytes)
        memory[:] = 0
        offset = self.arena.offset(memory)
        assert offset is not None
        self._registered[offset] = memory
        return MappedRegion(self.rank, offset, nbytes, memory)

    def ticket(self, region: Region) -> list[int]:
        """See ExposesMemory.ticket."""
        return [region.offset, region.nbytes]

    def reach(self, ticket: list[int], peer: int) -> Region:
        """See ExposesMemory.reach."""
        offset, nbytes = ticket
        return MappedRegion(peer, offset, nbytes, self.arena.memory[peer][offset : offset + nbytes])

    def exclusive(self, owner: int) -> AbstractContextManager[None]:
        """See Excluding.exclusive."""
        return self.arena.exclusive(owner)

    def order_writes(self) -> None:
        """See ExposesMemory.order_writes: stores become visible in program order."""

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """See OneSided.write."""
        self.traffic.count(source.nbytes)
        np.copyto(self._part(target, offset, source.nbytes), as_bytes(source))
        return Done()

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """See OneSided.read; counts as traffic of the reader."""
        self.traffic.count(target.nbytes)
        np.copyto(as_bytes(target), self._part(source, offset, target.nbytes))
        return Done()

    def set_flag(self, target: Region, value: int) -> None:
        """See OneSided.set_flag."""
        self.arena.words[target.rank][self._flag(target, self.rank)] = value

    def poll_flag(self, region: Region, writer: int) -> int:
        """See OneSided.poll_flag."""
        return self.arena.words[region.rank][self._flag(region, writer)]

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """See OneSided.write_flagged. memcpy guarantees no order of its stores, so the value is a separate store after
        it."""
        nbytes = source.nbytes
        self.traffic.count(nbytes + 8)
        part = self._part(target, offset, nbytes + 8)
        if nbytes:
            part[:nbytes] = as_bytes(source)
        self.arena.words[target.rank][(target.offset + offset + nbytes) // 8] = value
        return Done()

    def poll_word(self, region: Region, offset: int) -> int:
        """See OneSided.poll_word."""
        return self.arena.words[region.rank][(region.offset + offset) // 8]

    def barrier(self) -> None:
        """See Transport.barrier."""
        dissemination(self)

    def close(self) -> None:
        """See Transport.close; the memory is freed with the last array in it."""
        for descriptor in self._peers:
            os.close(descriptor)
        self._peers = []
        self.arena.close()
        self.arena.consent.withdraw()

    def advance(self) -> None:
        """Make progress with the oldest message of every peer and direction."""
        for queues in (self._sends, self._receives):
            for queue in queues:
                while queue and queue[0].advance():
                    queue.popleft()

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See Mapped.wait_for."""
        wait_until(ready, partial(self.check_peer, peer), self._spins, self._post, peer, moved=self._moved)

    def _moved(self) -> int:
        return sum(channel.moved for channel in (*self._out, *self._in))

    def check_peer(self, peer: int) -> None:
        """See WatchesPeers.check_peer."""
        poll = select.poll()
        poll.register(self._peers[peer], select.POLLIN)
        if poll.poll(0):
            raise PeerLost(peer, f"rank {peer} has ended while rank {self.rank} was waiting for it")

    def _receive(self, buffer: Array, peer: int, ufunc: Reducing | None) -> Handle:
        receive = Receive(self._in[peer], buffer, ufunc, self.advance, self._blocks[peer])
        self._receives[peer].append(receive)
        self.advance()
        return receive

    def _exchange_offset(self, key: str, memory: Array) -> list[int]:
        return self._rendezvous.exchange(f"shm.{key}", self.rank, self.world_size, self.arena.offset(memory))

    def _part(self, region: Region, offset: int, nbytes: int) -> Array:
        assert region.local is not None
        region.check_inside(offset, nbytes)
        return region.local[offset : offset + nbytes]

    def _flag(self, region: Region, writer: int) -> int:
        return (region.offset - (self.world_size - writer) * CACHE_LINE) // 8


def why_not() -> str:
    """Reason why shared memory does not work here; empty if it does."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"needs the store order of x86-64, this is {platform.machine()}"
    return "" if hasattr(os, "memfd_create") else "this kernel has no memfd_create"


PLUGIN = TransportPlugin(
    name="shm",
    summary="our own: one-sided writes into shared regions",
    implementation=SharedMemory,
    axis="shared-memory",
    point_to_point=True,
    channels=True,
    one_sided=True,
    own_memory=True,
    one_node=True,
    progress="caller",
    mailbox=ONE_SIDED_MAILBOX,
    bears=frozenset({"kill"}),
    within_node="memory",
    stated_costs="shm.costs.yaml",
    polls=True,
    check_installation=why_not,
    colour="blue",
    marker="o",
)
