"""RDMA through verbs: reliable-connected queue pairs, one registered region per rank, one-sided writes and reads,
two-sided messages; RoCE and InfiniBand.

The device interface of xue2019: a peer's region is memory that is written and read without the peer's help, and a flag
after the bytes announces that they have arrived. Order: a queue pair executes its requests in order, and the bytes of
one write are placed in increasing order (without relaxed ordering), so a rank that has seen the flag has the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field

from scaleproof.fabric.verbs import choose
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plugins import ONE_SIDED_MAILBOX, Options, TransportPlugin
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import CACHE_LINE, as_bytes
from scaleproof.transports.contract import (
    REAL_DTYPES,
    UFUNCS,
    Array,
    Capabilities,
    Done,
    Handle,
    ReduceOperation,
    Region,
    Traffic,
)
from scaleproof.transports.verbs.device_errors import DeviceMissing
from scaleproof.transports.verbs.peer_mesh import Mesh
from scaleproof.transports.verbs.rdma_facts import facts, library_name
from scaleproof.transports.verbs.rdma_region import RdmaRegion
from scaleproof.transports.verbs.verbs_device import VerbsDevice, free_bytes

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.spec.case import AnyCase


class Rdma:
    """Ranks on ports that reach each other. The caller drives progress inside `wait` and `test`; one thread at a
    time."""

    def __init__(self, context: RankContext, mesh: Mesh) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.mesh, self.device = mesh, mesh.device
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=True,
            collective=False,
            dtypes=REAL_DTYPES,
            progress="caller",
            path="verbs",
            library=library_name(mesh.device),
        )
        self.traffic = Traffic()
        self.operations, self.copies = mesh.operations, mesh.copies
        self._context = context
        self._regions = 0
        self._closed = False

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """Open the port of the case's interface, register the region, connect to every rank. Raises DeviceMissing,
        MemlockTooSmall, TransportError."""
        case = context.case
        try:
            port = choose(case.interface, context.address)
        except SpecError as error:
            raise DeviceMissing(str(error)) from error
        local = sum(
            1
            for rank in range(case.ranks)
            if rank * case.nodes // case.ranks == context.rank * case.nodes // case.ranks
        )
        mesh = Mesh(context, VerbsDevice(port, pinned_bytes(case, local)), local)
        try:
            mesh.connect()
        except BaseException:
            mesh.release()
            raise
        return cls(context, mesh)

    def allocate(self, nbytes: int) -> Array:
        """Bytes in the registered region, which the device accesses without staging. Raises RegionExhausted."""
        return self.device.region.allocate(nbytes)

    def locate(self, buffer: Array) -> int | None:
        """Offset of a buffer in this rank's registered region; None if it is elsewhere."""
        return self.device.region.offset(buffer)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        self.mesh.raise_if_lost(peer)
        return self.mesh.peers[peer].outbox.send(as_bytes(buffer))

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self.mesh.peers[peer].inbox.recv(buffer, as_bytes(buffer), None)

    def recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        """Like `recv`, but the bytes are reduced into the buffer as they arrive."""
        return self.mesh.peers[peer].inbox.recv(buffer, as_bytes(buffer), UFUNCS[operation])

    def register(self, nbytes: int) -> Region:
        """See OneSided.register; zeroed. Flags are in front of the bytes, one cache line per writer."""
        memory = self.allocate(self.world_size * CACHE_LINE + nbytes)
        memory[:] = 0
        starts = self._context.rendezvous.exchange(
            f"rdma.region-{self._regions}", self.rank, self.world_size, self.locate(memory)
        )
        self._regions += 1
        head = self.world_size * CACHE_LINE
        return RdmaRegion(self.rank, starts[self.rank] + head, nbytes, memory[head:], starts, self._regions)

    def deregister(self, region: Region) -> None:
        """See OneSided.deregister; the memory is freed with the last array in it."""
        region.local = None

    def remote(self, region: Region, peer: int) -> Region:
        """See OneSided.remote."""
        assert isinstance(region, RdmaRegion)
        local = region.local if peer == self.rank else None
        return RdmaRegion(
            peer,
            region.starts[peer] + self.world_size * CACHE_LINE,
            region.nbytes,
            local,
            region.starts,
            region.queue_pair_index,
        )

    def expose(self, nbytes: int) -> Region:
        """See ExposesMemory.expose."""
        memory = self.allocate(nbytes)
        memory[:] = 0
        offset = self.locate(memory)
        assert offset is not None
        return RdmaRegion(self.rank, offset, nbytes, memory)

    def ticket(self, region: Region) -> list[int]:
        """See ExposesMemory.ticket."""
        return [region.offset, region.nbytes]

    def reach(self, ticket: list[int], peer: int) -> Region:
        """See ExposesMemory.reach."""
        offset, nbytes = ticket
        return RdmaRegion(peer, offset, nbytes)

    def order_writes(self) -> None:
        """See ExposesMemory.order_writes: all exposed regions use one queue pair, which keeps their order."""

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """See OneSided.write; done when the peer's device has acknowledged it."""
        self.traffic.count(source.nbytes)
        return self._transfer(as_bytes(source), target, offset)

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """See OneSided.read; counts as traffic of the reader."""
        self.traffic.count(target.nbytes)
        return self._transfer(as_bytes(target), source, offset, reads=True)

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """See OneSided.write_flagged: bytes and value are gathered into one write."""
        self.traffic.count(source.nbytes + 8)
        return self._transfer(as_bytes(source), target, offset, value=value)

    def set_flag(self, target: Region, value: int) -> None:
        """See OneSided.set_flag."""
        assert isinstance(target, RdmaRegion)
        offset = target.offset - (self.world_size - self.rank) * CACHE_LINE
        if target.rank == self.rank:
            self.device.words[offset // 8] = value
            return
        self.mesh.raise_if_lost(target.rank)
        peer = self.mesh.peers[target.rank]
        peer.one_sided.flag(peer.connection.base + offset, target.queue_pair_index, value)

    def poll_flag(self, region: Region, writer: int) -> int:
        """See OneSided.poll_flag; the word is read until two reads agree, since verbs do not guarantee that eight bytes
        are written at once."""
        return self._word(region.offset - (self.world_size - writer) * CACHE_LINE)

    def poll_word(self, region: Region, offset: int) -> int:
        """See OneSided.poll_word."""
        return self._word(region.offset + offset)

    def post_message(self, message: bytes, peer: int) -> None:
        """See ShortMessages.post_message."""
        self.traffic.count(len(message))
        self.mesh.raise_if_lost(peer)
        self.mesh.peers[peer].connection.post_short(message)
        self.mesh.advance()

    def next_message(self, peer: int) -> bytes | None:
        """See ShortMessages.next_message."""
        short_messages = self.mesh.peers[peer].connection.short_messages
        if not short_messages:
            self.mesh.advance()
        return short_messages.popleft() if short_messages else None

    def barrier(self) -> None:
        """See Transport.barrier."""
        dissemination(self)

    def check_peer(self, peer: int) -> None:
        """See WatchesPeers.check_peer."""
        self.mesh.peers[peer].connection.check()

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See OneSided.wait_for."""
        self.mesh.wait_for(ready, peer)

    def close(self) -> None:
        """See Transport.close; first waits until all transfers are acknowledged, and notifies the peers."""
        if self._closed:
            return
        self._closed = True
        self._context.facts["verbs"] = facts(self.device, self.operations, self.copies)
        self.mesh.close()

    def _transfer(
        self, data: Array, region: Region, offset: int, *, reads: bool = False, value: int | None = None
    ) -> Handle:
        assert isinstance(region, RdmaRegion)
        nbytes = data.size + (0 if value is None else 8)
        region.check_inside(offset, nbytes)
        if region.local is not None:
            return self._within_own(data, region.local[offset : offset + nbytes], reads, value)
        if not data.size and value is None:
            return Done()
        self.mesh.raise_if_lost(region.rank)
        peer = self.mesh.peers[region.rank]
        remote = peer.connection.base + region.offset + offset
        return peer.one_sided.start(data, remote, region.queue_pair_index, reads=reads, value=value)

    def _within_own(self, data: Array, own: Array, reads: bool, value: int | None) -> Handle:
        """Copy within this rank's own region."""
        if reads:
            data[:] = own
        else:
            own[: data.size] = data
            if value is not None:
                own[data.size :].view(np.uint64)[0] = value
        return Done()

    def _word(self, offset: int) -> int:
        words, index = self.device.words, offset // 8
        value = words[index]
        while (again := words[index]) != value:
            value = again
        return value


class RdmaOptions(Options):
    """Options of the transports over verbs."""

    region_mib: float | None = Field(
        None,
        gt=0,
        description="Memory that each rank registers with its device, MiB; null: a quarter of the node's, shared by "
        "its ranks, at most 1 GiB each.",
    )


def pinned_bytes(case: AnyCase, local: int) -> int:
    """Bytes of the region that each rank registers; `local`: ranks on its node."""
    region_mib = case.value("transport.region_mib")
    return round(region_mib * 2**20) if region_mib else free_bytes(local)


PLUGIN = TransportPlugin(
    name="rdma",
    summary="our own: verbs, queue pairs over RoCE or InfiniBand",
    implementation=Rdma,
    requires=("pyverbs",),
    advice="type `apt-get install python3-pyverbs ibverbs-providers`, then `make env`",
    devices="/sys/class/infiniband",
    options=RdmaOptions,
    axis="one-sided-RDMA",
    point_to_point=True,
    one_sided=True,
    own_memory=True,
    pinned_bytes=pinned_bytes,
    progress="caller",
    mailbox=ONE_SIDED_MAILBOX,
    stated_costs="rdma.costs.yaml",
    polls=True,
)
