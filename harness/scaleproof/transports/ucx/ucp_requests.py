"""Calls of UCX that are under way."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_void_p
from typing import Any, Protocol

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports.contract import Handle
from scaleproof.transports.ucx import ucp_library as ucp


class Endpoints(Protocol):
    """What a request needs of the transport that made it."""

    @property
    def worker_handle(self) -> c_void_p:
        """UCX's worker, which the request belongs to."""

    def advance(self) -> None:
        """Let the library move what it can."""

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """Block until `ready()`; TransportError when the peer is gone."""

    def under_way(self, request: Request, going: bool) -> None:
        """Keep or forget a request that the library still knows."""

    def failure(self, peer: int, status: int) -> TransportError:
        """The error that a negative status stands for."""


class Request:
    """A call that the library has not finished; it keeps the call's buffer alive."""

    def __init__(
        self, transport: Endpoints, pointer: int | None, peer: int, buffer: Any, received: ucp.Received | None
    ) -> None:
        self._transport, self._pointer, self._peer = transport, pointer, peer
        self._buffer, self._received = buffer, received
        self._failed: TransportError | None = None
        if pointer:
            transport.under_way(self, True)
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
        """Whether it is over, in whatever way."""
        try:
            return self.test()
        except TransportError:
            return True

    def cancel(self) -> None:
        """The transport closes: the library must not touch the buffer any more."""
        library = ucp.library()
        if self._pointer is not None:
            library.ucp_request_cancel(self._transport.worker_handle, self._pointer)
            library.ucp_request_free(self._pointer)
            self._pointer = None
            self._failed = TransportError("the transport was closed before the call was done")

    def _advance(self) -> bool:
        self._transport.advance()
        library = ucp.library()
        if self._received is None:
            status = library.ucp_request_check_status(self._pointer)
        else:
            status = library.ucp_tag_recv_request_test(self._pointer, byref(self._received))
        if status == ucp.IN_PROGRESS:
            return False
        library.ucp_request_free(self._pointer)
        self._transport.under_way(self, False)
        self._pointer = None
        self._finish(status)
        return True

    def _finish(self, status: int) -> None:
        if status < 0:
            self._failed = self._transport.failure(self._peer, status)
        elif self._received is not None and self._received.nbytes != self._buffer.size:
            self._failed = TransportError(
                f"rank {self._peer} sent {self._received.nbytes} bytes where {self._buffer.size} were expected"
            )
        if self._failed is not None:
            raise self._failed


class Both:
    """A payload and its flag."""

    def __init__(self, payload: Handle, flag: Handle) -> None:
        self._payload, self._flag = payload, flag

    def test(self) -> bool:
        return self._flag.test() and self._payload.test()

    def wait(self) -> None:
        self._payload.wait()
        self._flag.wait()
