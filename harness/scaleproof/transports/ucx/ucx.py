"""UCX: its one-sided puts and gets as a device with a memory, its tagged messages as sends and receives. Without CUDA
and verbs, UCX moves bytes through shared memory or TCP.

On interface `lo` all ranks are on one machine and UCX uses its transports posix and cma. On any other interface it uses
tcp, which emulates puts and gets, so the target has to make progress too. Peers prove that they know the launch's token
over plain TCP connections; the end of such a connection shows that the peer is gone.
"""

from __future__ import annotations

import os
import socket
from ctypes import addressof, byref, c_uint64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleproof.core.handshake import connect_all
from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.plugins import ONE_SIDED_MAILBOX, TransportPlugin
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import CACHE_LINE, as_bytes
from scaleproof.transports.contract import REAL_DTYPES, Array, Capabilities, Done, Handle, Region, Traffic
from scaleproof.transports.ucx import ucp_library as ucp
from scaleproof.transports.ucx.lifelines import Lifelines
from scaleproof.transports.ucx.ucp_objects import UcpContext, UcpMemory, UcpWorker
from scaleproof.transports.ucx.ucp_requests import PayloadAndFlag, PendingCalls
from scaleproof.transports.ucx.ucx_region import UcxRegion
from scaleproof.transports.verbs.device_errors import DeviceMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scaleproof.core.context import RankContext

SHARED_MEMORY = Path("/dev/shm")
TAG_MASK = 2**64 - 1


def transports_on(interface: str) -> str:
    """The transports of UCX that may carry bytes on an interface."""
    return "self,posix,cma" if interface == "lo" else "self,tcp"


class Ucx:
    """Ranks of any machines. The caller drives progress inside `wait`, `test` and `poll_word`; the target of a put over
    tcp has to do so too."""

    def __init__(self, context: RankContext) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        ucx_transports, interface = transports_on(context.case.interface), context.case.interface
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=True,
            collective=False,
            dtypes=REAL_DTYPES,
            progress="caller",
            path="socket" if "tcp" in ucx_transports else "shared memory",
            library=f"UCX {ucp.version()}",
        )
        context.facts["ucx"] = {"transports": ucx_transports, "device": interface}
        if interface not in (name for _, name in socket.if_nameindex()):
            raise DeviceMissing(
                f"no interface {interface!r}; there are {', '.join(name for _, name in socket.if_nameindex())}"
            )
        if SHARED_MEMORY in context.folder.parents:
            # A rank that is killed while its memory is made would leave a file; the launch's scratch goes with the
            # launch.
            os.environ["UCX_POSIX_DIR"] = str(context.folder)
        self._rendezvous = context.rendezvous
        self._library = ucp.library()
        self._lifelines = Lifelines(connect_all(context, "ucx"))
        self._context = UcpContext(ucx_transports, interface)
        self._worker = UcpWorker(self._context)
        self._regions = 0
        self._registered: dict[int, UcxRegion] = {}
        self._released_keys: list[c_void_p] = []
        """Keys of peers' exposed regions, and of regions that were deregistered while a put was under way; they are
        destroyed at the end."""
        self.calls = PendingCalls(context, self._worker, self._lifelines, over_tcp="tcp" in ucx_transports)
        self._closed = False

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        transport = cls(context)
        addresses = context.rendezvous.exchange(
            "ucx.address", context.rank, context.world_size, transport._worker.address().hex()
        )
        for peer, address in enumerate(addresses):
            if peer != context.rank:
                transport._worker.connect(peer, bytes.fromhex(address), transport.capabilities.path == "socket")
        transport.barrier()
        return transport

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: these transports of UCX need no registered memory."""
        return np.empty(nbytes, np.uint8)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        data = as_bytes(buffer)
        request = self._library.ucp_tag_send_nbx(
            self._worker.endpoints[peer], data.ctypes.data, data.size, self.rank, byref(ucp.NO_OPTIONS)
        )
        return self.calls.start(request, peer, data)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        data, info = as_bytes(buffer), ucp.ReceiveInfo()
        parameters = ucp.RequestParameters(
            op_attr_mask=ucp.RequestParameters.RECEIVE_INFO, receive_info=addressof(info)
        )
        request = self._library.ucp_tag_recv_nbx(
            self._worker.handle, data.ctypes.data, data.size, peer, TAG_MASK, byref(parameters)
        )
        return self.calls.start(request, peer, data, info)

    def register(self, nbytes: int) -> Region:
        """See OneSided.register; flags are in front of the bytes, one cache line per writer."""
        memory = UcpMemory(self._context, self.world_size * CACHE_LINE + nbytes)
        own = {"address": memory.address, "key": memory.key.hex()}
        everyone = self._rendezvous.exchange(f"ucx.region-{self._regions}", self.rank, self.world_size, own)
        self._regions += 1
        offset = self.world_size * CACHE_LINE
        region = UcxRegion(self.rank, memory.address + offset, nbytes, memory.array[offset:], everyone)
        self._registered[region.offset] = region
        return region

    def deregister(self, region: Region) -> None:
        """See OneSided.deregister; the memory is freed with the last array in it. A pending put needs its key, so all
        puts are finished first."""
        assert isinstance(region, UcxRegion)
        self._registered.pop(region.offset, None)
        region.local = None
        if self._closed or self.calls.all_ended():
            self._destroy(region.keys.values())
        else:
            self._released_keys += region.keys.values()
        region.keys.clear()

    def remote(self, region: Region, peer: int) -> Region:
        """See OneSided.remote."""
        assert isinstance(region, UcxRegion)
        if peer not in region.keys:
            region.keys[peer] = self._worker.key(peer, bytes.fromhex(region.everyone[peer]["key"]))
        return UcxRegion(
            peer,
            region.everyone[peer]["address"] + self.world_size * CACHE_LINE,
            region.nbytes,
            None,
            region.everyone,
            region.keys,
        )

    def expose(self, nbytes: int) -> Region:
        """See ExposesMemory.expose."""
        memory = UcpMemory(self._context, nbytes)
        own = {"address": memory.address, "nbytes": nbytes, "key": memory.key.hex()}
        region = UcxRegion(self.rank, memory.address, nbytes, memory.array, [own])
        self._registered[region.offset] = region
        return region

    def ticket(self, region: Region) -> dict[str, Any]:
        """See ExposesMemory.ticket."""
        return _region(region).everyone[0]

    def reach(self, ticket: dict[str, Any], peer: int) -> Region:
        """See ExposesMemory.reach."""
        key = self._worker.key(peer, bytes.fromhex(ticket["key"]))
        self._released_keys.append(key)
        return UcxRegion(peer, ticket["address"], ticket["nbytes"], None, [ticket], {peer: key})

    def order_writes(self) -> None:
        """See ExposesMemory.order_writes."""
        ucp.check(self._library.ucp_worker_fence(self._worker.handle), "fencing")

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """See OneSided.write."""
        self.traffic.count(source.nbytes)
        return self._write(as_bytes(source), target, offset)

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """See OneSided.read; counts as traffic of the reader."""
        self.traffic.count(target.nbytes)
        data = as_bytes(target)
        address, key = _region(source).locate(offset, data.size)
        request = self._library.ucp_get_nbx(
            self._worker.endpoints[source.rank], data.ctypes.data, data.size, address, key, byref(ucp.NO_OPTIONS)
        )
        return self.calls.start(request, source.rank, data)

    def set_flag(self, target: Region, value: int) -> None:
        """See OneSided.set_flag."""
        self._write_word(target, (self.rank - self.world_size) * CACHE_LINE, value)

    def poll_flag(self, region: Region, writer: int) -> int:
        """See OneSided.poll_flag."""
        return self.poll_word(region, (writer - self.world_size) * CACHE_LINE)

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """See OneSided.write_flagged: two puts with a fence between them, counted as one message."""
        self.traffic.count(source.nbytes + 8)
        payload = self._write(as_bytes(source), target, offset) if source.size else Done()
        flag = self._write_word(target, offset + source.nbytes, value)
        return flag if isinstance(payload, Done) else PayloadAndFlag(payload, flag)

    def poll_word(self, region: Region, offset: int) -> int:
        """See OneSided.poll_word."""
        if region.local is None:
            raise TransportError("the region was deregistered")
        self.calls.advance()
        return c_uint64.from_address(region.offset + offset).value

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See OneSided.wait_for."""
        self.calls.wait_for(ready, peer)

    def check_peer(self, peer: int) -> None:
        """See WatchesPeers.check_peer."""
        self.calls.check(peer)

    def barrier(self) -> None:
        """See Transport.barrier. Two rounds, because a rank that has left the first round may still have to push one of
        its messages, which it has done when it enters the second."""
        dissemination(self)
        dissemination(self)

    def close(self) -> None:
        """See Transport.close."""
        if self._closed:
            return
        self.calls.drain()
        self._closed = True
        self.calls.cancel()
        self._worker.disconnect()
        for region in list(self._registered.values()):
            self.deregister(region)
        self._destroy(self._released_keys)
        self._worker.close()
        self.calls.release_buffers()
        self._context.release()
        self._lifelines.close()

    def _write(self, data: Array, target: Region, offset: int) -> Handle:
        address, key = _region(target).locate(offset, data.size)
        request = self._library.ucp_put_nbx(
            self._worker.endpoints[target.rank], data.ctypes.data, data.size, address, key, byref(ucp.NO_OPTIONS)
        )
        return self.calls.start(request, target.rank, data)

    def _write_word(self, target: Region, offset: int, value: int) -> Handle:
        """Write a word after all earlier puts."""
        self.order_writes()
        word, key = c_uint64(value), _region(target).key
        request = self._library.ucp_put_nbx(
            self._worker.endpoints[target.rank], addressof(word), 8, target.offset + offset, key, byref(ucp.NO_OPTIONS)
        )
        return self.calls.start(request, target.rank, word)

    def _destroy(self, keys: Iterable[c_void_p]) -> None:
        for key in keys:
            self._library.ucp_rkey_destroy(key)


def _region(region: Region) -> UcxRegion:
    assert isinstance(region, UcxRegion)
    return region


PLUGIN = TransportPlugin(
    name="ucx",
    summary="UCX's puts, gets and tagged messages, without CUDA",
    implementation=Ucx,
    requires=("libucx",),
    axis="UCX",
    point_to_point=True,
    one_sided=True,
    progress="caller",
    moves_in_wait=True,
    mailbox=ONE_SIDED_MAILBOX,
    within_node="memory",
    stated_costs="ucx.costs.yaml",
    polls=True,
)
