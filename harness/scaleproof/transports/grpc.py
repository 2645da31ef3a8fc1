"""Our own service over grpcio: one stream of chunks per ordered pair of ranks, raw bytes without protobuf or pickle.

A chunk belongs to one message; an empty message is one empty chunk. The receiving thread reads a chunk only when a
receive is posted for it, so HTTP/2's flow control holds back a sender that is ahead.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleproof.core.transport_errors import MessageTooLarge, PeerLost, TransportError
from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports import _grpc_streams
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports._grpc_streams import CONSENT, Inbox, Metadata, Outbox, Receive
from scaleproof.transports.contract import REAL_DTYPES, UFUNCS, Array, Capabilities, Handle, ReduceOperation, Traffic

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

SERVICE, METHOD = "scaleproof.Messages", "Deliver"
WINDOW = 4 << 20
"""Bytes of a stream that may be sent before the receiver reads them."""
GRACE_S = 2.0
"""How long `close` waits for peers to receive all messages and to end their streams."""
LIMITS = ("grpc.max_send_message_length", "grpc.max_receive_message_length")
"""Options that limit the bytes of one message; -1: no limit. gRPC's default for received messages is 4 MiB."""
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


class Grpc:
    """Every rank is a server and a client of every other rank. Two threads of the library per peer move the bytes."""

    def __init__(self, context: RankContext) -> None:
        # Ranks are forked before this import and never fork themselves; gRPC's fork handlers would only slow them.
        os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        import grpc

        self._grpc = grpc
        _check_limits()
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=False,
            collective=False,
            dtypes=REAL_DTYPES,
            progress="background",
            path="socket",
            library=f"grpcio {grpc.__version__}",
        )
        self._token, self._post = context.token, context.post
        self._peers = [peer for peer in range(self.world_size) if peer != self.rank]
        context.facts.setdefault(
            "tuning", {"chunk_bytes": _grpc_streams.CHUNK, "receive_threads": len(self._peers), **dict(OPTIONS)}
        )
        self._inboxes = {peer: Inbox(peer, context.post) for peer in self._peers}
        self._threads = ThreadPoolExecutor(max(len(self._peers), 1), thread_name_prefix="grpc receive")
        self._server = grpc.server(self._threads, options=OPTIONS)
        handler = grpc.stream_unary_rpc_method_handler(self._deliver)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        try:
            port = self._server.add_insecure_port(f"{context.address}:0")
        except RuntimeError as error:
            raise TransportError(f"cannot listen on {context.address}: {error}") from error
        self._server.start()
        self._outboxes: dict[int, Outbox] = {}
        self._joined = self._closed = False
        try:
            addresses = context.rendezvous.exchange("grpc", self.rank, self.world_size, f"{context.address}:{port}")
            self._outboxes.update({peer: self._outbox(peer, addresses[peer]) for peer in self._peers})
            for outbox in self._outboxes.values():
                outbox.wait_for_consent()
            self._joined = True
        except Exception:
            self.close()
            raise

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: gRPC needs no registered memory."""
        return np.empty(nbytes, np.uint8)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send. The handle is done when gRPC has a copy of the last chunk."""
        self.traffic.count(buffer.nbytes)
        return self._outboxes[peer].send(as_bytes(buffer))

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self._inboxes[peer].recv(Receive(self._inboxes[peer], buffer, None))

    def recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        """Like `recv`, but each chunk is reduced into the buffer as it arrives."""
        return self._inboxes[peer].recv(Receive(self._inboxes[peer], buffer, UFUNCS[operation]))

    def check_peer(self, peer: int) -> None:
        """See WatchesPeers.check_peer: whether its stream has ended, which is after all that it has sent."""
        if reason := self._inboxes[peer].closed:
            raise reason

    def barrier(self) -> None:
        """See Transport.barrier."""
        dissemination(self)

    def close(self) -> None:
        """End this rank's streams, let the peers end theirs, stop the server and its threads."""
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
            inbox.close(TransportError(f"rank {self.rank} closed its transport"))
        for outbox in self._outboxes.values():
            outbox.close()
        self._server.stop(None).wait()
        self._threads.shutdown()

    def _outbox(self, peer: int, address: str) -> Outbox:
        metadata: Metadata = (("token", self._token), ("source", str(self.rank)))
        return Outbox(
            self._grpc,
            peer,
            self._grpc.insecure_channel(address, options=OPTIONS),
            f"/{SERVICE}/{METHOD}",
            metadata,
            self._post,
        )

    def _deliver(self, chunks: Iterator[bytes], call: Any) -> bytes:
        """Serve one peer's stream until it ends."""
        inbox = self._inbox_of(call)
        call.send_initial_metadata((CONSENT,))
        reason: TransportError = PeerLost(inbox.peer, f"rank {inbox.peer} closed its stream")
        try:
            for chunk in chunks:
                if not inbox.deliver(chunk):
                    break
        except TransportError as error:
            reason = error
            call.abort(self._grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except self._grpc.RpcError:
            reason = PeerLost(inbox.peer, f"the connection from rank {inbox.peer} broke")
        finally:
            inbox.ended.set()
            inbox.close(reason)
        return b""

    def _inbox_of(self, call: Any) -> Inbox:
        """The inbox of the sender's stream. Aborts the call if the sender does not know the token."""
        metadata = dict(call.invocation_metadata())
        if not hmac.compare_digest(str(metadata.get("token", "")), self._token):
            call.abort(self._grpc.StatusCode.UNAUTHENTICATED, "wrong token")
        source = metadata.get("source", "")
        peer = int(source) if source.isdecimal() else -1
        if peer not in self._inboxes or self._inboxes[peer].claimed:
            call.abort(self._grpc.StatusCode.ALREADY_EXISTS, f"no stream is open for rank {source}")
        self._inboxes[peer].claimed = True
        return self._inboxes[peer]


def _check_limits() -> None:
    """Raises MessageTooLarge when gRPC's limit is below a chunk, which would break the stream at the first one."""
    limits = [value for name, value in OPTIONS if name in LIMITS and value >= 0]
    if limits and min(limits) < _grpc_streams.CHUNK:
        raise MessageTooLarge(
            f"a chunk of {_grpc_streams.CHUNK} bytes does not fit gRPC's limit of {min(limits)} bytes per message; "
            "use smaller chunks or raise the limit"
        )


PLUGIN = TransportPlugin(
    name="grpc",
    summary="our service over grpcio, streamed chunks",
    implementation=Grpc,
    requires=("grpc",),
    axis="gRPC",
    point_to_point=True,
    channels=True,
    eager_to_socket=True,
    mailbox=MESSAGE_MAILBOX,
    bears=frozenset({"kill"}),
    stated_costs="grpc.costs.yaml",
    colour="green",
    marker="^",
)
