"""Calls of UCX that have not finished: their handles, and the progress that the library needs for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from ctypes import byref
from functools import partial
from typing import TYPE_CHECKING, Any

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, wait_until
from scaleproof.transports.contract import Done, Handle
from scaleproof.transports.ucx import ucp_library as ucp
from scaleproof.transports.ucx.lifelines import Lifelines
from scaleproof.transports.ucx.ucp_objects import UcpWorker

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

LEAVE_S = 1.0
"""How long a rank that closes waits, at most, until its messages are sent."""


def failure(peer: int, status: int) -> TransportError:
    """The error of a request's negative status."""
    if status == ucp.TRUNCATED:
        return TransportError(f"rank {peer} sent a message with more bytes than its receiver expects")
    if status in ucp.PEER_STATUS:
        return PeerLost(peer, f"rank {peer} is gone (UCX status {status})")
    return TransportError(f"UCX: a call towards rank {peer} ended with status {status}")


class Request:
    """A call that the library has not finished. It keeps the call's buffer alive."""

    def __init__(
        self, calls: PendingCalls, pointer: int | None, peer: int, buffer: Any, receive_info: ucp.ReceiveInfo | None
    ) -> None:
        self._calls, self._pointer, self._peer = calls, pointer, peer
        self._buffer, self._receive_info = buffer, receive_info
        self._failed: TransportError | None = None
        if pointer:
            calls.pending.add(self)
        else:
            self._finish(0)

    def test(self) -> bool:
        if self._failed is not None:
            raise self._failed
        return self._pointer is None or self._advance()

    def wait(self) -> None:
        if not self.test():
            self._calls.wait_for(self.test, self._peer)

    def ended(self) -> bool:
        """Whether the call has ended, with or without success."""
        try:
            return self.test()
        except TransportError:
            return True

    def cancel(self) -> None:
        """Cancel when the transport closes: the library must not access the buffer afterwards."""
        library = ucp.library()
        if self._pointer is not None:
            library.ucp_request_cancel(self._calls.worker.handle, self._pointer)
            library.ucp_request_free(self._pointer)
            self._pointer = None
            self._failed = TransportError("the transport was closed before the call was done")

    def _advance(self) -> bool:
        self._calls.advance()
        library = ucp.library()
        if self._receive_info is None:
            status = library.ucp_request_check_status(self._pointer)
        else:
            status = library.ucp_tag_recv_request_test(self._pointer, byref(self._receive_info))
        if status == ucp.IN_PROGRESS:
            return False
        library.ucp_request_free(self._pointer)
        self._calls.pending.discard(self)
        self._pointer = None
        self._finish(status)
        return True

    def _finish(self, status: int) -> None:
        if status < 0:
            self._failed = failure(self._peer, status)
        elif self._receive_info is not None and self._receive_info.nbytes != self._buffer.size:
            self._failed = TransportError(
                f"rank {self._peer} sent {self._receive_info.nbytes} bytes where {self._buffer.size} were expected"
            )
        if self._failed is not None:
            raise self._failed


class PayloadAndFlag:
    """Handle of a payload and the flag that follows it."""

    def __init__(self, payload: Handle, flag: Handle) -> None:
        self._payload, self._flag = payload, flag

    def test(self) -> bool:
        return self._flag.test() and self._payload.test()

    def wait(self) -> None:
        self._payload.wait()
        self._flag.wait()


class PendingCalls:
    """All calls of a rank that have not finished. The library makes progress in `advance` and `wait_for`."""

    def __init__(self, context: RankContext, worker: UcpWorker, lifelines: Lifelines, over_tcp: bool) -> None:
        self.worker, self.pending = worker, set[Request]()
        self._rank, self._post = context.rank, context.post
        self._library, self._lifelines, self._over_tcp = ucp.library(), lifelines, over_tcp
        self._spins = CROWDED_SPINS if context.world_size > len(os.sched_getaffinity(0)) else SPINS

    def start(self, pointer: int | None, peer: int, buffer: Any, info: ucp.ReceiveInfo | None = None) -> Handle:
        """The handle of a call, from the library's result: a request, an error, or nothing if it has finished."""
        if not pointer and (info is None or info.nbytes == buffer.size):
            return Done()
        if pointer and pointer >= ucp.FIRST_ERROR_POINTER:
            raise failure(peer, pointer - 2**64)
        return Request(self, pointer, peer, buffer, info)

    def advance(self) -> None:
        """Let the library make progress. Raises PeerLost over tcp when a peer has died, without making progress: UCX
        would end the process when it cannot acknowledge a put."""
        if self._over_tcp and (peer := self._lifelines.died()) is not None:
            self.worker.abandon()
            raise PeerLost(peer, f"rank {peer} has ended while rank {self._rank} was working")
        self.worker.progress()

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See OneSided.wait_for."""
        wait_until(ready, partial(self.check, peer), self._spins, self._post, peer, moved=lambda: self.worker.moved)

    def drain(self) -> None:
        """Flush pending calls, unless a peer is gone."""
        deadline = time.monotonic() + LEAVE_S
        pointer = self._library.ucp_worker_flush_nbx(self.worker.handle, byref(ucp.NO_OPTIONS))
        if not pointer or pointer >= ucp.FIRST_ERROR_POINTER:
            return
        flush = Request(self, pointer, -1, None, None)
        while time.monotonic() < deadline:
            if any(map(self._lifelines.gone, self._lifelines.peers)) or flush.ended():
                return

    def all_ended(self) -> bool:
        """Drain, and return whether all calls have ended."""
        if self.pending:
            self.drain()
        return all(request.ended() for request in list(self.pending))

    def cancel(self) -> None:
        """Cancel all pending calls."""
        for request in self.pending:
            request.cancel()

    def release_buffers(self) -> None:
        """Drop the buffers of pending calls; the worker is closed, so the library no longer accesses them."""
        self.pending.clear()

    def check(self, peer: int) -> None:
        """Raises PeerLost for a peer that is gone."""
        if self._lifelines.gone(peer):
            raise PeerLost(peer, f"rank {peer} has ended while rank {self._rank} was waiting for it")
