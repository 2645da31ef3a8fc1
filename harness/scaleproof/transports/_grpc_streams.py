"""Both ends of a stream of chunks over gRPC: queued messages at the sender, and receives that wait for chunks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import Array, Reducing

if TYPE_CHECKING:
    from scaleproof.core.board import Post

Metadata = tuple[tuple[str, str], ...]
CONSENT = ("consent", "yes")
"""Initial metadata of a peer that accepts our stream."""
CHUNK = 1 << 20
"""Bytes per gRPC message: of 64 KiB to 4 MiB the fastest for messages of 64 MiB; for smaller messages no size was
clearly faster."""
CHECK_S = 0.1
"""How often a waiting caller checks whether the peer is still alive."""


class Outbox:
    """The stream to one peer: gRPC's thread reads chunks from the queue of sends."""

    def __init__(self, grpc: Any, peer: int, channel: Any, method: str, metadata: Metadata, post: Post) -> None:
        self.peer, self.post = peer, post
        self.lost: str | None = None
        self._grpc = grpc
        self._queue: SimpleQueue[Send | None] = SimpleQueue()
        self._channel = channel
        self._call = channel.stream_unary(method).future(self._chunks(), metadata=metadata)
        self._call.add_done_callback(self._on_done)

    def wait_for_consent(self) -> None:
        """Wait for the peer's consent; raises PeerLost when it refuses or is gone."""
        if CONSENT not in (self._call.initial_metadata() or ()):
            raise PeerLost(self.peer, f"rank {self.peer} does not accept our stream: {self._call.details()}")

    def send(self, data: Array) -> Send:
        """Queue one message."""
        message = Send(self, data)
        self._queue.put(message)
        return message

    def end(self) -> None:
        """No more messages."""
        self._queue.put(None)

    def drain(self, deadline: float) -> None:
        """Wait until the peer has received everything, at most until the deadline on the monotonic clock. A peer that
        is gone ends the wait."""
        with contextlib.suppress(self._grpc.RpcError, self._grpc.FutureTimeoutError, self._grpc.FutureCancelledError):
            self._call.result(timeout=max(deadline - time.monotonic(), 0))

    def close(self) -> None:
        """Cancel pending messages."""
        self._call.cancel()
        self._channel.close()

    def _on_done(self, call: Any) -> None:
        self.lost = f"rank {self.peer} ended our stream: {call.details() or call.code()}"
        self._queue.put(None)

    def _chunks(self) -> Iterator[bytes]:
        while (message := self._queue.get()) is not None:
            data = memoryview(message.data)  # type: ignore[arg-type]
            last = max(len(data) - 1, 0) // CHUNK * CHUNK
            for start in range(0, last + 1, CHUNK):
                chunk = bytes(data[start : start + CHUNK])
                message.moved = start + len(chunk)
                if start == last:
                    message.finished.set()
                yield chunk


class Send:
    """Handle of a message that is being sent."""

    def __init__(self, outbox: Outbox, data: Array) -> None:
        self.data = data
        self.finished = threading.Event()
        self.moved = 0
        self._outbox = outbox

    def test(self) -> bool:
        if self.finished.is_set():
            return True
        if self._outbox.lost:
            raise PeerLost(self._outbox.peer, self._outbox.lost)
        return False

    def wait(self) -> None:
        _wait(self, self._outbox.peer, self._outbox.post)


class Inbox:
    """The stream from one peer, which matches receives and chunks."""

    def __init__(self, peer: int, post: Post) -> None:
        self.peer, self.post = peer, post
        self.claimed = False
        self.ended = threading.Event()
        self.closed: TransportError | None = None
        self._receives: deque[Receive] = deque()
        self._changed = threading.Condition()

    def recv(self, receive: Receive) -> Receive:
        """Post a receive."""
        with self._changed:
            self._receives.append(receive)
            self._changed.notify()
        return receive

    def deliver(self, chunk: bytes) -> bool:
        """Wait for a receive and deliver a chunk to the oldest one; False if the inbox was closed instead."""
        with self._changed:
            while not self._receives:
                if self.closed:
                    return False
                self._changed.wait()
            receive = self._receives[0]
        # Outside of the lock: only this thread removes receives, and a copy takes long.
        if receive.accept(chunk):
            self._receives.popleft()
            receive.finished.set()
        return True

    def close(self, reason: TransportError) -> None:
        """No more chunks will come; receives that wait raise `reason`."""
        with self._changed:
            self.closed = self.closed or reason
            self._changed.notify()


class Receive:
    """Handle of a message that is being received."""

    def __init__(self, inbox: Inbox, buffer: Array, ufunc: Reducing | None) -> None:
        self.finished = threading.Event()
        self._inbox = inbox
        self._dtype = buffer.dtype
        self._target = as_bytes(buffer)
        self._ufunc = ufunc
        self.moved = 0

    def accept(self, chunk: bytes) -> bool:
        """Copy or reduce the next chunk into the buffer; True when the message is complete. Raises TransportError for a
        message of another size."""
        source = np.frombuffer(chunk, np.uint8)
        target = self._target[self.moved : self.moved + source.size]
        if target.size != source.size or (source.size == 0 and self._target.size):
            raise TransportError(f"a message does not have the {self._target.size} bytes that its receiver expects")
        if self._ufunc is None:
            np.copyto(target, source)
        else:
            own = target.view(self._dtype)
            self._ufunc(own, source.view(self._dtype), out=own)
        self.moved += source.size
        return self.moved == self._target.size

    def test(self) -> bool:
        if self.finished.is_set():
            return True
        # The stream may end immediately after a complete message.
        if self._inbox.closed and not self.finished.is_set():
            raise self._inbox.closed
        return False

    def wait(self) -> None:
        _wait(self, self._inbox.peer, self._inbox.post)


def _wait(message: Send | Receive, peer: int, post: Post) -> None:
    """Block until the message is done. A caller that blocks for long reports it on the board, again whenever bytes have
    moved."""
    last_moved = -1
    while not message.test():
        if not message.finished.wait(CHECK_S) and message.moved != last_moved:
            post.wait(peer)
            last_moved = message.moved
    if last_moved >= 0:
        post.stop_waiting()
