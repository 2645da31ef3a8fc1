"""Our own service over grpcio: one stream of chunks per ordered pair of ranks, raw bytes without protobuf or pickle.

A chunk belongs to one message; an empty message is one empty chunk. The receiving thread takes a chunk only when a receive is posted for it, so HTTP/2's
flow control holds back a sender that is ahead.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from harness.transports._arena import as_bytes
from harness.transports._barrier import dissemination
from harness.transports.base import Array, Capabilities, Handle, PeerLost, ReduceOperation, Traffic, TransportError

if TYPE_CHECKING:
    from harness.rank.context import RankContext

DTYPES = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
SERVICE, METHOD = "scaleproof.Messages", "Deliver"
CONSENT = ("consent", "yes")
CHUNK = 1 << 20
"""Bytes per gRPC message."""
WINDOW = 4 << 20
"""Bytes of a stream that may be under way before its receiver asked for them."""
CHECK_S = 0.1
GRACE_S = 2.0
"""How long `close` waits for peers to take what was sent and to end their streams."""
OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.http2.lookahead_bytes", WINDOW),
    ("grpc.http2.max_frame_size", (1 << 24) - 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
UFUNCS: dict[ReduceOperation, np.ufunc] = {"sum": np.add, "max": np.maximum}


class Grpc:
    """Every rank serves and calls every other. Two threads of the library per peer move the bytes."""

    def __init__(self, context: RankContext) -> None:
        # Ranks are forked before this import and never fork themselves; gRPC's fork handlers would only slow them.
        os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        import grpc

        self._grpc = grpc
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self.capabilities = Capabilities(
            point_to_point=True, one_sided=False, collective=False, dtypes=DTYPES, progress="background", path="socket", library=f"grpcio {grpc.__version__}"
        )
        self._token = context.token
        self._peers = [peer for peer in range(self.world_size) if peer != self.rank]
        self._inboxes = {peer: Inbox(peer) for peer in self._peers}
        self._threads = ThreadPoolExecutor(max(len(self._peers), 1), thread_name_prefix="grpc receive")
        self._server = grpc.server(self._threads, options=OPTIONS)
        handler = grpc.stream_unary_rpc_method_handler(self._deliver)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        port = self._server.add_insecure_port(f"{context.address}:0")
        self._server.start()
        self._outboxes: dict[int, Outbox] = {}
        self._joined = self._closed = False
        try:
            addresses = context.rendezvous.exchange("grpc", self.rank, self.world_size, f"{context.address}:{port}")
            self._outboxes.update({peer: Outbox(grpc, peer, addresses[peer], self._metadata()) for peer in self._peers})
            for outbox in self._outboxes.values():
                outbox.joined()
            self._joined = True
        except Exception:
            self.close()
            raise

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: gRPC registers none."""
        return np.empty(nbytes, np.uint8)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send; done when the last chunk is copied into gRPC's hands."""
        self.traffic.count(buffer.nbytes)
        return self._outboxes[peer].send(as_bytes(buffer))

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self._inboxes[peer].recv(Receive(self._inboxes[peer], buffer, None))

    def recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        """Like `recv`, but each chunk is reduced into the buffer as it arrives."""
        return self._inboxes[peer].recv(Receive(self._inboxes[peer], buffer, UFUNCS[operation]))

    def barrier(self) -> None:
        """See Transport.barrier."""
        dissemination(self)

    def close(self) -> None:
        """End the own streams, let the peers end theirs, stop the server and its threads."""
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + (GRACE_S if self._joined else 0)
        for outbox in self._outboxes.values():
            outbox.end()
        for outbox in self._outboxes.values():
            outbox.drain(deadline)
        for inbox in self._inboxes.values():
            inbox.ended.wait(max(deadline - time.monotonic(), 0))
            inbox.close(f"rank {self.rank} closed its transport")
        for outbox in self._outboxes.values():
            outbox.close()
        self._server.stop(0).wait()
        self._threads.shutdown()

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("token", self._token), ("source", str(self.rank)))

    def _deliver(self, chunks: Iterator[bytes], call: Any) -> bytes:
        """Serve one peer's stream until it ends."""
        inbox = self._inbox_of(call)
        call.send_initial_metadata((CONSENT,))
        reason = f"rank {inbox.peer} closed its stream"
        try:
            for chunk in chunks:
                if not inbox.put(chunk):
                    break
        except TransportError as error:
            reason = str(error)
            call.abort(self._grpc.StatusCode.FAILED_PRECONDITION, reason)
        except self._grpc.RpcError:
            reason = f"the connection from rank {inbox.peer} broke"
        finally:
            inbox.ended.set()
            inbox.close(reason)
        return b""

    def _inbox_of(self, call: Any) -> Inbox:
        """The sender's inbox; ends the call of whoever does not know the token."""
        metadata = dict(call.invocation_metadata())
        if not hmac.compare_digest(str(metadata.get("token", "")), self._token):
            call.abort(self._grpc.StatusCode.UNAUTHENTICATED, "wrong token")
        source = metadata.get("source", "")
        peer = int(source) if source.isdecimal() else -1
        if peer not in self._inboxes or self._inboxes[peer].taken:
            call.abort(self._grpc.StatusCode.ALREADY_EXISTS, f"no stream is open for rank {source}")
        self._inboxes[peer].taken = True
        return self._inboxes[peer]


class Outbox:
    """The stream to one peer: gRPC's thread draws chunks from the queue of sends."""

    def __init__(self, grpc: Any, peer: int, address: str, metadata: tuple[tuple[str, str], ...]) -> None:
        self.peer = peer
        self.lost: str | None = None
        self._grpc = grpc
        self._queue: SimpleQueue[Send | None] = SimpleQueue()
        self._channel = grpc.insecure_channel(address, options=OPTIONS)
        self._call = self._channel.stream_unary(f"/{SERVICE}/{METHOD}").future(self._chunks(), metadata=metadata)
        self._call.add_done_callback(self._on_done)

    def joined(self) -> None:
        """Wait for the peer's consent; raises PeerLost when it refuses or is gone."""
        if CONSENT not in (self._call.initial_metadata() or ()):
            raise PeerLost(self.peer, f"rank {self.peer} does not take our stream: {self._call.details()}")

    def send(self, data: Array) -> Send:
        """Queue one message."""
        message = Send(self, data)
        self._queue.put(message)
        return message

    def end(self) -> None:
        """No more messages."""
        self._queue.put(None)

    def drain(self, deadline: float) -> None:
        """Wait until the peer took everything, at most until the deadline on the monotonic clock; a peer that is gone takes nothing more."""
        with contextlib.suppress(self._grpc.RpcError, self._grpc.FutureTimeoutError, self._grpc.FutureCancelledError):
            self._call.result(timeout=max(deadline - time.monotonic(), 0))

    def close(self) -> None:
        """Cancel what is left."""
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
                if start == last:
                    message.finished.set()
                yield chunk


class Send:
    """Handle of one message on its way out."""

    def __init__(self, outbox: Outbox, data: Array) -> None:
        self.data = data
        self.finished = threading.Event()
        self._outbox = outbox

    def test(self) -> bool:
        if self.finished.is_set():
            return True
        if self._outbox.lost:
            raise PeerLost(self._outbox.peer, self._outbox.lost)
        return False

    def wait(self) -> None:
        while not self.test():
            self.finished.wait(CHECK_S)


class Inbox:
    """What one peer sends: receives wait here for chunks, chunks for receives."""

    def __init__(self, peer: int) -> None:
        self.peer = peer
        self.taken = False
        self.ended = threading.Event()
        self.closed: str | None = None
        self._receives: deque[Receive] = deque()
        self._changed = threading.Condition()

    def recv(self, receive: Receive) -> Receive:
        """Post a receive."""
        with self._changed:
            self._receives.append(receive)
            self._changed.notify()
        return receive

    def put(self, chunk: bytes) -> bool:
        """Give a chunk to the oldest receive, once there is one; False when the inbox was closed instead."""
        with self._changed:
            while not self._receives:
                if self.closed:
                    return False
                self._changed.wait()
            receive = self._receives[0]
        # Outside of the lock: only this thread takes receives, and a copy is long.
        if receive.take(chunk):
            self._receives.popleft()
            receive.finished.set()
        return True

    def close(self, reason: str) -> None:
        """Nothing will come any more."""
        with self._changed:
            self.closed = self.closed or reason
            self._changed.notify()


class Receive:
    """Handle of one message on its way in."""

    def __init__(self, inbox: Inbox, buffer: Array, ufunc: np.ufunc | None) -> None:
        self.finished = threading.Event()
        self._inbox = inbox
        self._dtype = buffer.dtype
        self._target = as_bytes(buffer)
        self._ufunc = ufunc
        self._position = 0

    def take(self, chunk: bytes) -> bool:
        """Copy or reduce one chunk into its place; True when the message is complete."""
        source = np.frombuffer(chunk, np.uint8)
        target = self._target[self._position : self._position + source.size]
        if target.size != source.size or (source.size == 0 and self._target.size):
            raise TransportError(f"a message does not have the {self._target.size} bytes that its receiver expects")
        if self._ufunc is None:
            np.copyto(target, source)
        else:
            own = target.view(self._dtype)
            self._ufunc(own, source.view(self._dtype), out=own)
        self._position += source.size
        return self._position == self._target.size

    def test(self) -> bool:
        if self.finished.is_set():
            return True
        # A message that is complete may have been followed at once by the end of the stream.
        if self._inbox.closed and not self.finished.is_set():
            raise PeerLost(self._inbox.peer, self._inbox.closed)
        return False

    def wait(self) -> None:
        while not self.test():
            self.finished.wait(CHECK_S)
