"""UCX: its one-sided puts and gets as a device with a memory, its tagged messages as sends and receives. Without CUDA
and verbs, UCX moves bytes through shared memory or TCP.

On interface `lo` ranks share a machine: UCX's posix and cma transports; on any other its tcp over that interface, which
emulates puts and gets, so the target has to make progress too. Peers prove that they know the launch's token over plain
connections, whose end later shows that a peer is gone.
"""

from __future__ import annotations

import os
import socket
import time
from ctypes import addressof, byref, c_uint64, c_void_p
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleproof.core.handshake import connect_all
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import CACHE_LINE, as_bytes
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, wait_until
from scaleproof.transports.contract import REAL_DTYPES, Array, Capabilities, Done, Handle, Region, Traffic
from scaleproof.transports.ucx import ucp_library as ucp
from scaleproof.transports.ucx.lifelines import Lifelines
from scaleproof.transports.ucx.ucp_objects import UcpContext, UcpMemory, UcpWorker
from scaleproof.transports.ucx.ucp_requests import PayloadAndFlag, Request, failure
from scaleproof.transports.ucx.ucx_region import UcxRegion
from scaleproof.transports.verbs.device_errors import DeviceMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scaleproof.core.context import RankContext

SHARED_MEMORY = Path("/dev/shm")
LEAVE_S = 1.0
"""How long a rank that closes waits, at most, until its messages have left."""
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
        self._post, self._rendezvous = context.post, context.rendezvous
        self._library = ucp.library()
        self._lifelines = Lifelines(connect_all(context, "ucx"))
        self._context = UcpContext(ucx_transports, interface)
        self._worker = UcpWorker(self._context)
        self._regions = 0
        self._registered: dict[int, UcxRegion] = {}
        self._released_keys: list[c_void_p] = []
        """Keys of regions that were deregistered while a put was under way; they are destroyed at the end."""
        self._under_way: set[Request] = set()
        self._closed, self._over_tcp = False, "tcp" in ucx_transports
        self._spins = CROWDED_SPINS if context.world_size > len(os.sched_getaffinity(0)) else SPINS

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
        """Plain memory: the transports in use need none registered."""
        return np.empty(nbytes, np.uint8)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        data = as_bytes(buffer)
        request = self._library.ucp_tag_send_nbx(
            self._worker.endpoints[peer], data.ctypes.data, data.size, self.rank, byref(ucp.NO_OPTIONS)
        )
        return self._request(request, peer, data)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        data, info = as_bytes(buffer), ucp.ReceiveInfo()
        parameters = ucp.RequestParameters(
            op_attr_mask=ucp.RequestParameters.RECEIVE_INFO, receive_info=addressof(info)
        )
        request = self._library.ucp_tag_recv_nbx(
            self._worker.handle, data.ctypes.data, data.size, peer, TAG_MASK, byref(parameters)
        )
        return self._request(request, peer, data, info)

    def register(self, nbytes: int) -> Region:
        """See OneSided.register; flags lie before the bytes, one cache line per writer."""
        memory = UcpMemory(self._context, self.world_size * CACHE_LINE + nbytes)
        own = {"address": memory.address, "key": memory.key.hex()}
        everyone = self._rendezvous.exchange(f"ucx.region-{self._regions}", self.rank, self.world_size, own)
        self._regions += 1
        offset = self.world_size * CACHE_LINE
        region = UcxRegion(self.rank, memory.address + offset, nbytes, memory.array[offset:], everyone)
        self._registered[region.offset] = region
        return region

    def deregister(self, region: Region) -> None:
        """See OneSided.deregister; the memory is freed with the last array in it. A put that is still under way needs
        its key, so all puts are finished first."""
        assert isinstance(region, UcxRegion)
        self._registered.pop(region.offset, None)
        region.local = None
        if self._closed or self._settled():
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

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """See OneSided.write."""
        self.traffic.count(source.nbytes)
        return self._put(as_bytes(source), target, offset)

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """See OneSided.read; counts as traffic of the reader."""
        self.traffic.count(target.nbytes)
        data = as_bytes(target)
        address, key = _region(source).locate(offset, data.size)
        request = self._library.ucp_get_nbx(
            self._worker.endpoints[source.rank], data.ctypes.data, data.size, address, key, byref(ucp.NO_OPTIONS)
        )
        return self._request(request, source.rank, data)

    def set_flag(self, target: Region, value: int) -> None:
        """See OneSided.set_flag."""
        self._put_word(target, (self.rank - self.world_size) * CACHE_LINE, value)

    def poll_flag(self, region: Region, writer: int) -> int:
        """See OneSided.poll_flag."""
        return self.poll_word(region, (writer - self.world_size) * CACHE_LINE)

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """See OneSided.write_flagged: two puts with a fence between them, counted as one message, as the caller
        sees it."""
        self.traffic.count(source.nbytes + 8)
        payload = self._put(as_bytes(source), target, offset) if source.size else Done()
        flag = self._put_word(target, offset + source.nbytes, value)
        return flag if isinstance(payload, Done) else PayloadAndFlag(payload, flag)

    def poll_word(self, region: Region, offset: int) -> int:
        """See OneSided.poll_word."""
        if region.local is None:
            raise TransportError("the region was deregistered")
        self.advance()
        return c_uint64.from_address(region.offset + offset).value

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See OneSided.wait_for."""
        wait_until(ready, partial(self.check, peer), self._spins, self._post, peer, moved=lambda: self._worker.moved)

    def barrier(self) -> None:
        """See Transport.barrier. Two rounds: a rank that has left the first may still have a message of it to push, a
        rank that has entered the second has not."""
        dissemination(self)
        dissemination(self)

    def close(self) -> None:
        """See Transport.close."""
        if self._closed:
            return
        self._drain()
        self._closed = True
        for request in self._under_way:
            request.cancel()
        self._worker.disconnect()
        for region in list(self._registered.values()):
            self.deregister(region)
        self._destroy(self._released_keys)
        self._worker.close()
        self._under_way.clear()  # until here the library could access their buffers
        self._context.release()
        self._lifelines.close()

    def check(self, peer: int) -> None:
        """Raises PeerLost when the peer has ended or has closed its transport."""
        if self._lifelines.gone(peer):
            raise PeerLost(peer, f"rank {peer} has ended while rank {self.rank} was waiting for it")

    def advance(self) -> None:
        """Let the library make progress. Not over tcp when a peer has died: UCX ends the process when it cannot
        acknowledge a put. Raises PeerLost then."""
        if self._over_tcp and (peer := self._lifelines.died()) is not None:
            self._worker.abandon()
            raise PeerLost(peer, f"rank {peer} has ended while rank {self.rank} was working")
        self._worker.progress()

    @property
    def worker_handle(self) -> c_void_p:
        """See RequestOwner."""
        return self._worker.handle

    def started(self, request: Request) -> None:
        """See RequestOwner."""
        self._under_way.add(request)

    def finished(self, request: Request) -> None:
        """See RequestOwner."""
        self._under_way.discard(request)

    def _put(self, data: Array, target: Region, offset: int) -> Handle:
        address, key = _region(target).locate(offset, data.size)
        request = self._library.ucp_put_nbx(
            self._worker.endpoints[target.rank], data.ctypes.data, data.size, address, key, byref(ucp.NO_OPTIONS)
        )
        return self._request(request, target.rank, data)

    def _put_word(self, target: Region, offset: int, value: int) -> Handle:
        """Write a word behind all earlier puts."""
        ucp.check(self._library.ucp_worker_fence(self._worker.handle), "fencing")
        word, key = c_uint64(value), _region(target).key
        request = self._library.ucp_put_nbx(
            self._worker.endpoints[target.rank], addressof(word), 8, target.offset + offset, key, byref(ucp.NO_OPTIONS)
        )
        return self._request(request, target.rank, word)

    def _request(self, pointer: int | None, peer: int, buffer: Any, info: ucp.ReceiveInfo | None = None) -> Handle:
        if not pointer and (info is None or info.nbytes == buffer.size):
            return Done()
        if pointer and pointer >= ucp.FIRST_ERROR_POINTER:
            raise failure(peer, pointer - 2**64)
        return Request(self, pointer, peer, buffer, info)

    def _drain(self) -> None:
        """Flush what is under way to peers that are still there."""
        deadline = time.monotonic() + LEAVE_S
        pointer = self._library.ucp_worker_flush_nbx(self._worker.handle, byref(ucp.NO_OPTIONS))
        if not pointer or pointer >= ucp.FIRST_ERROR_POINTER:
            return
        flush = Request(self, pointer, -1, None, None)
        while time.monotonic() < deadline:
            if any(map(self._lifelines.gone, self._lifelines.peers)) or flush.ended():
                return

    def _settled(self) -> bool:
        """Whether nothing is under way any more."""
        if self._under_way:
            self._drain()
        return all(request.ended() for request in list(self._under_way))

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
    stated_costs="libraries",
)
