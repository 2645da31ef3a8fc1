"""Handles of UCX calls that are under way."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_void_p
from typing import Any, Protocol

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports.contract import Handle
from scaleproof.transports.ucx import ucp_library as ucp


class RequestOwner(Protocol):
    """What a request needs of the transport that made it."""

    @property
    def worker_handle(self) -> c_void_p:
        """UCX's worker, which the request belongs to."""

    def advance(self) -> None:
        """Let the library make progress."""

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """Block until `ready()`; TransportError when the peer is gone."""

    def started(self, request: Request) -> None:
        """Keep a request until it is finished."""

    def finished(self, request: Request) -> None:
        """Drop a request that the library has released."""


def failure(peer: int, status: int) -> TransportError:
    """The error that a request's negative status stands for."""
    if status == ucp.TRUNCATED:
        return TransportError(f"rank {peer} sent a message with more bytes than its receiver expects")
    if status in ucp.PEER_STATUS:
        return PeerLost(peer, f"rank {peer} is gone (UCX status {status})")
    return TransportError(f"UCX: a call towards rank {peer} ended with status {status}")


class Request:
    """A call that the library has not finished; it keeps the call's buffer alive."""

    def __init__(
        self, transport: RequestOwner, pointer: int | None, peer: int, buffer: Any, receive_info: ucp.ReceiveInfo | None
    ) -> None:
        self._transport, self._pointer, self._peer = transport, pointer, peer
        self._buffer, self._receive_info = buffer, receive_info
        self._failed: TransportError | None = None
        if pointer:
            transport.started(self)
        else:
            self._finish(0)

    def test(self) -> bool:
        if self._failed is not None:
            raise self._failed
        return self._pointer is None or self._advance()

    def wait(self) -> None:
        if not self.test():
            self._transport.wait_for(self.test, self._peer)

    def ended(self) -> bool:
        """Whether it is over, with or without success."""
        try:
            return self.test()
        except TransportError:
            return True

    def cancel(self) -> None:
        """Cancel when the transport closes: the library must not access the buffer afterwards."""
        library = ucp.library()
        if self._pointer is not None:
            library.ucp_request_cancel(self._transport.worker_handle, self._pointer)
            library.ucp_request_free(self._pointer)
            self._pointer = None
            self._failed = TransportError("the transport was closed before the call was done")

    def _advance(self) -> bool:
        self._transport.advance()
        library = ucp.library()
        if self._receive_info is None:
            status = library.ucp_request_check_status(self._pointer)
        else:
            status = library.ucp_tag_recv_request_test(self._pointer, byref(self._receive_info))
        if status == ucp.IN_PROGRESS:
            return False
        library.ucp_request_free(self._pointer)
        self._transport.finished(self)
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
    """Handle of a payload and the flag behind it."""

    def __init__(self, payload: Handle, flag: Handle) -> None:
        self._payload, self._flag = payload, flag

    def test(self) -> bool:
        return self._flag.test() and self._payload.test()

    def wait(self) -> None:
        self._payload.wait()
        self._flag.wait()
