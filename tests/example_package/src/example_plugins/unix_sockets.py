"""Unix-domain sockets between the ranks of one machine: framed messages, moved by a thread per peer and direction."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from scaleproof.core.handshake import Refused, answer, prove
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports.contract import REAL_DTYPES, Array, Capabilities, Handle, Traffic

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

HEADER = struct.Struct("<Q")
"""Bytes of the payload that follows."""
CONNECT_S = 60.0


class UnixSockets:
    """One connected socket per pair of ranks."""

    capabilities = Capabilities(
        point_to_point=True,
        one_sided=False,
        collective=False,
        dtypes=REAL_DTYPES,
        progress="background",
        path="socket",
        library="example_plugins unix_sockets",
    )

    def __init__(self, rank: int, world_size: int, sockets: dict[int, socket.socket]) -> None:
        self.rank, self.world_size = rank, world_size
        self.traffic = Traffic()
        self._peers = {peer: _Peer(peer, connected) for peer, connected in sockets.items()}

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """Connect to lower ranks, accept higher ones, both after a proof that the other side knows the token."""
        path = Path(tempfile.gettempdir()) / f"{context.launch_id}-{context.rank}.socket"
        sockets: dict[int, socket.socket] = {}
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener, _removed(path):
            listener.bind(str(path))
            listener.listen(context.world_size)
            listener.settimeout(CONNECT_S)
            paths = context.rendezvous.exchange("unix_sockets", context.rank, context.world_size, str(path))
            try:
                for peer in range(context.rank):
                    sockets[peer] = opened = socket.socket(socket.AF_UNIX)
                    opened.connect(paths[peer])
                    prove(opened, context.token, context.launch_id, context.rank)
                while len(sockets) < context.world_size - 1:
                    opened = listener.accept()[0]
                    sockets[answer(opened, context.token, context.launch_id)] = opened
            except (OSError, Refused) as error:
                for opened in sockets.values():
                    opened.close()
                raise TransportError(f"rank {context.rank} could not connect to its peers: {error}") from error
        for opened in sockets.values():
            opened.settimeout(None)
        return cls(context.rank, context.world_size, sockets)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: a socket copies from and to any."""
        return np.empty(nbytes, np.uint8)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        return self._peers[peer].sender.start(buffer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self._peers[peer].receiver.start(buffer)

    def barrier(self) -> None:
        """Rank 0 waits for an empty message of everybody, and answers."""
        nothing = np.empty(0, np.uint8)
        peers = range(1, self.world_size) if self.rank == 0 else range(1)
        if self.rank == 0:
            for peer in peers:
                self.recv(nothing, peer).wait()
        for peer in peers:
            self.send(nothing, peer).wait()
        if self.rank != 0:
            self.recv(nothing, 0).wait()

    def close(self) -> None:
        """See Transport.close."""
        for peer in self._peers.values():
            peer.close()
        self._peers = {}


class _Call:
    """Handle of a message under way."""

    def __init__(self, buffer: Array) -> None:
        self.payload = memoryview(buffer.reshape(-1).view(np.uint8))
        self.error: TransportError | None = None
        self.ended = threading.Event()

    def test(self) -> bool:
        if self.ended.is_set() and self.error:
            raise self.error
        return self.ended.is_set()

    def wait(self) -> None:
        self.ended.wait()
        self.test()


class _Lane:
    """A thread that moves the messages of one direction, in order."""

    def __init__(self, peer: int, move: Callable[[memoryview], None]) -> None:
        self._peer, self._move = peer, move
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def start(self, buffer: Array) -> _Call:
        call = _Call(buffer)
        self._calls.put(call)
        return call

    def end(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        failed: TransportError | None = None
        while (call := self._calls.get()) is not None:
            try:
                if failed is None:
                    self._move(call.payload)
            except TransportError as error:
                failed = error
            except OSError as error:
                failed = PeerLost(self._peer, f"rank {self._peer} is gone: {error.strerror}")
            call.error = failed
            call.ended.set()


class _Peer:
    """The connection to one rank."""

    def __init__(self, peer: int, connected: socket.socket) -> None:
        self._peer, self._socket = peer, connected
        self.sender, self.receiver = _Lane(peer, self._send), _Lane(peer, self._receive)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the peer may have closed its side
            self._socket.shutdown(socket.SHUT_RDWR)
        self.sender.end()
        self.receiver.end()
        self._socket.close()

    def _send(self, payload: memoryview) -> None:
        self._socket.sendall(HEADER.pack(len(payload)))
        if payload:  # after an empty message of a barrier the peer may have left already
            self._socket.sendall(payload)

    def _receive(self, payload: memoryview) -> None:
        header = bytearray(HEADER.size)
        self._fill(memoryview(header))
        if (nbytes := HEADER.unpack(header)[0]) != len(payload):
            raise TransportError(f"rank {self._peer} sent {nbytes} bytes where {len(payload)} were expected")
        self._fill(payload)

    def _fill(self, target: memoryview) -> None:
        while target:
            received = self._socket.recv_into(target)
            if not received:
                raise PeerLost(self._peer, f"rank {self._peer} closed the connection")
            target = target[received:]


@contextlib.contextmanager
def _removed(path: Path) -> Iterator[None]:
    """The file of a listening socket, which stays behind when the socket is closed."""
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


PLUGIN = TransportPlugin(
    name="unix_sockets",
    summary="Unix-domain sockets between the ranks of one machine",
    implementation=UnixSockets,
    axis="sockets",
    point_to_point=True,
    one_node=True,
    mailbox=MESSAGE_MAILBOX,
    colour="violet",
    marker="p",
)
