"""UCX: its one-sided puts and gets as a device with a memory, its tagged messages as sends and receives. Without CUDA
and verbs: shared memory, or TCP.

On interface `lo` ranks share a machine: UCX's posix and cma transports; on any other its tcp over that interface, which
emulates puts and gets, so that the target has to make progress too. Peers prove the launch's token over plain
connections, which then show, by their end, when a peer is gone.
"""

from __future__ import annotations

import os
import socket
import time
from ctypes import addressof, byref, c_uint64, c_void_p
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleproof.core.handshake import connect_all
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import CACHE_LINE, as_bytes
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, wait_until
from scaleproof.transports.contract import REAL_DTYPES, Array, Capabilities, Done, Handle, Region, Traffic
from scaleproof.transports.ucx import ucp_library as ucp
from scaleproof.transports.ucx.lifelines import Lifelines
from scaleproof.transports.ucx.ucp_requests import Both, Request
from scaleproof.transports.verbs.device_errors import DeviceMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scaleproof.core.context import RankContext

SHARED = Path("/dev/shm")
LEAVE_S = 1.0
"""At most, for what a rank that leaves has sent to be on its way."""
ALL = 2**64 - 1


def transports_on(interface: str) -> str:
    """UCX's names of the ways that bytes may take."""
    return "self,posix,cma" if interface == "lo" else "self,tcp"


class Ucx:
    """Ranks of any machines. The caller drives progress inside `wait`, `test` and `poll_word`; the target of a put over
    tcp has to do so too."""

    def __init__(self, context: RankContext) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        ways, interface = transports_on(context.case.interface), context.case.interface
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=True,
            collective=False,
            dtypes=REAL_DTYPES,
            progress="caller",
            path="socket" if "tcp" in ways else "shared memory",
            library=f"UCX {ucp.version()}",
        )
        context.facts["ucx"] = {"transports": ways, "device": interface}
        if interface not in (name for _, name in socket.if_nameindex()):
            raise DeviceMissing(
                f"no interface {interface!r}; there are {', '.join(name for _, name in socket.if_nameindex())}"
            )
        if SHARED in context.folder.parents:
            # A rank that is killed while its memory is made would leave a file; the launch's scratch goes with the
            # launch.
            os.environ["UCX_POSIX_DIR"] = str(context.folder)
        self._post, self._rendezvous = context.post, context.rendezvous
        self._library = ucp.library()
        self._lifelines = Lifelines(connect_all(context, "ucx"))
        self._context = ucp.Context(ways, interface)
        self._worker = ucp.Worker(self._context)
        self._regions = 0
        self._registered: dict[int, _Mapped] = {}
        self._spent: list[c_void_p] = []
        """Keys of regions that were given back while a put was under way; they go when nothing can be any more."""
        self._under_way: set[Request] = set()
        self._closed, self._over_tcp = False, "tcp" in ways
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
        sent = self._library.ucp_tag_send_nbx(
            self._worker.endpoints[peer], data.ctypes.data, data.size, self.rank, byref(ucp.PLAIN)
        )
        return self._request(sent, peer, data)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        data, received = as_bytes(buffer), ucp.Received()
        parameters = ucp.RequestParam(mask=ucp.RECEIVED, received=addressof(received))
        request = self._library.ucp_tag_recv_nbx(
            self._worker.handle, data.ctypes.data, data.size, peer, ALL, byref(parameters)
        )
        return self._request(request, peer, data, received)

    def register(self, nbytes: int) -> Region:
        """See OneSided.register; flags lie before the bytes, one cache line per writer."""
        memory = ucp.Memory(self._context, self.world_size * CACHE_LINE + nbytes)
        own = {"address": memory.address, "key": memory.key.hex()}
        known = self._rendezvous.exchange(f"ucx.region-{self._regions}", self.rank, self.world_size, own)
        self._regions += 1
        offset = self.world_size * CACHE_LINE
        region = _Mapped(self.rank, memory.address + offset, nbytes, memory.array[offset:], known)
        self._registered[region.offset] = region
        return region

    def deregister(self, region: Region) -> None:
        """See OneSided.deregister; the memory goes with the last array in it. A put that is still under way needs its
        key: all are waited for first."""
        assert isinstance(region, _Mapped)
        self._registered.pop(region.offset, None)
        region.local = None
        if self._closed or self._settled():
            self._destroy(region.keys.values())
        else:
            self._spent += region.keys.values()
        region.keys.clear()

    def remote(self, region: Region, peer: int) -> Region:
        """See OneSided.remote."""
        assert isinstance(region, _Mapped)
        if peer not in region.keys:
            region.keys[peer] = self._worker.key(peer, bytes.fromhex(region.known[peer]["key"]))
        return _Mapped(
            peer,
            region.known[peer]["address"] + self.world_size * CACHE_LINE,
            region.nbytes,
            None,
            region.known,
            region.keys,
        )

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """See OneSided.write."""
        self.traffic.count(source.nbytes)
        return self._put(as_bytes(source), target, offset)

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """See OneSided.read; counts as traffic of the reader, who asked for it."""
        self.traffic.count(target.nbytes)
        data = as_bytes(target)
        address, key = self._place(source, offset, data.size)
        got = self._library.ucp_get_nbx(
            self._worker.endpoints[source.rank], data.ctypes.data, data.size, address, key, byref(ucp.PLAIN)
        )
        return self._request(got, source.rank, data)

    def set_flag(self, target: Region, value: int) -> None:
        """See OneSided.set_flag."""
        self._put_word(target, (self.rank - self.world_size) * CACHE_LINE, value)

    def poll_flag(self, region: Region, writer: int) -> int:
        """See OneSided.poll_flag."""
        return self.poll_word(region, (writer - self.world_size) * CACHE_LINE)

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """See OneSided.write_flagged: two puts with a fence between them, counted as the one message that the caller
        asked for."""
        self.traffic.count(source.nbytes + 8)
        payload = self._put(as_bytes(source), target, offset) if source.size else Done()
        flag = self._put_word(target, offset + source.nbytes, value)
        return flag if isinstance(payload, Done) else Both(payload, flag)

    def poll_word(self, region: Region, offset: int) -> int:
        """See OneSided.poll_word."""
        if region.local is None:
            raise TransportError("the region was given back")
        self.advance()
        return c_uint64.from_address(region.offset + offset).value

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See OneSided.wait_for."""
        wait_until(ready, partial(self.check, peer), self._spins, self._post, peer, moved=lambda: self._worker.moved)

    def barrier(self) -> None:
        """See Transport.barrier. Twice: who has left the first one may have a message of it left to push, who has
        entered the second one has not."""
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
        self._destroy(self._spent)
        self._worker.close()
        self._under_way.clear()  # their buffers were the library's until here
        self._context.leave()
        self._lifelines.close()

    def check(self, peer: int) -> None:
        """Raises PeerLost when the peer has ended or has closed its transport."""
        if self._lifelines.gone(peer):
            raise PeerLost(peer, f"rank {peer} has ended while rank {self.rank} was waiting for it")

    def advance(self) -> None:
        """Let the library move what it can. Over tcp not when a peer has died: UCX ends the process when it cannot
        acknowledge what came of a put."""
        if self._over_tcp and (peer := self._lifelines.died()) is not None:
            self._worker.abandon()
            raise PeerLost(peer, f"rank {peer} has ended while rank {self.rank} was at work")
        self._worker.progress()

    @property
    def worker_handle(self) -> c_void_p:
        """For calls about one request."""
        return self._worker.handle

    def under_way(self, request: Request, going: bool) -> None:
        """Requests that the library still knows."""
        (self._under_way.add if going else self._under_way.discard)(request)

    def failure(self, peer: int, status: int) -> TransportError:
        """What a request's status means."""
        if status == ucp.TRUNCATED:
            return TransportError(f"rank {peer} sent a message with more bytes than its receiver expects")
        if status in ucp.PEER_STATUS:
            return PeerLost(peer, f"rank {peer} is gone (UCX status {status})")
        return TransportError(f"UCX: a call towards rank {peer} ended with status {status}")

    def _put(self, data: Array, target: Region, offset: int) -> Handle:
        address, key = self._place(target, offset, data.size)
        put = self._library.ucp_put_nbx(
            self._worker.endpoints[target.rank], data.ctypes.data, data.size, address, key, byref(ucp.PLAIN)
        )
        return self._request(put, target.rank, data)

    def _put_word(self, target: Region, offset: int, value: int) -> Handle:
        """Behind all puts before it."""
        ucp.check(self._library.ucp_worker_fence(self._worker.handle), "a fence")
        word, key = c_uint64(value), self._key(target)
        put = self._library.ucp_put_nbx(
            self._worker.endpoints[target.rank], addressof(word), 8, target.offset + offset, key, byref(ucp.PLAIN)
        )
        return self._request(put, target.rank, word)

    def _place(self, region: Region, offset: int, nbytes: int) -> tuple[int, c_void_p]:
        if offset < 0 or offset + nbytes > region.nbytes:
            raise TransportError(
                f"bytes [{offset}, {offset + nbytes}) are outside of a region of {region.nbytes} bytes"
            )
        return region.offset + offset, self._key(region)

    def _key(self, region: Region) -> c_void_p:
        assert isinstance(region, _Mapped)
        return region.keys[region.rank]

    def _request(self, pointer: int | None, peer: int, buffer: Any, received: ucp.Received | None = None) -> Handle:
        if not pointer and (received is None or received.nbytes == buffer.size):
            return Done()
        if pointer and pointer >= ucp.FAILED:
            raise self.failure(peer, pointer - 2**64)
        return Request(self, pointer, peer, buffer, received)

    def _drain(self) -> None:
        """Push what is under way to peers that are still there."""
        deadline = time.monotonic() + LEAVE_S
        flush = self._library.ucp_worker_flush_nbx(self._worker.handle, byref(ucp.PLAIN))
        if not flush or flush >= ucp.FAILED:
            return
        waiting = Request(self, flush, -1, None, None)
        while time.monotonic() < deadline:
            if any(map(self._lifelines.gone, self._lifelines.peers)) or waiting.ended():
                return

    def _settled(self) -> bool:
        """Whether nothing is under way any more."""
        if self._under_way:
            self._drain()
        return all(request.ended() for request in list(self._under_way))

    def _destroy(self, keys: Iterable[c_void_p]) -> None:
        for key in keys:
            self._library.ucp_rkey_destroy(key)


@dataclass(slots=True)
class _Mapped(Region):
    """A region of UCX's memory: `offset` is its address in its own process; `known` every rank's address and packed
    key, `keys` those unpacked here."""

    known: list[dict[str, Any]] = field(default_factory=list, repr=False)
    keys: dict[int, c_void_p] = field(default_factory=dict, repr=False)
