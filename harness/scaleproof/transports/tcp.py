"""Our own TCP: one non-blocking socket per pair of ranks, with vectored writes. The caller drives progress; data is
reduced as it arrives."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Self

import numpy as np

from scaleproof.core.handshake import connect_all
from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._tcp_frames import Connection, Incoming, Outgoing
from scaleproof.transports.contract import REAL_DTYPES, UFUNCS, Array, Capabilities, Handle, ReduceOperation, Traffic

if TYPE_CHECKING:
    from scaleproof.core.board import Post
    from scaleproof.core.context import RankContext

SPINS = 10
"""Polls of the sockets before the caller sleeps until one is ready."""
SILENT_SLEEP_MS = 1
"""How long a caller sleeps before it reports on the board that it waits."""


class Tcp:
    """Connects ranks on any machines that reach each other's address."""

    capabilities = Capabilities(
        point_to_point=True,
        one_sided=False,
        collective=False,
        dtypes=REAL_DTYPES,
        progress="caller",
        path="socket",
        library="scaleproof tcp",
    )

    def __init__(self, rank: int, world_size: int, connections: dict[int, Connection], post: Post) -> None:
        self.rank, self.world_size = rank, world_size
        self.traffic = Traffic()
        self._connections = connections
        self._post = post

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """Connect to every rank; raises TransportError when one does not come or does not know the token."""
        connected = connect_all(context)
        return cls(
            context.rank,
            context.world_size,
            {peer: Connection(peer, opened) for peer, opened in connected.items()},
            context.post,
        )

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: sockets need no registered memory."""
        return np.empty(nbytes, np.uint8)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        message = Outgoing(buffer)
        connection = self._connections[peer]
        connection.outgoing.append(message)
        if len(connection.outgoing) == 1:
            connection.push()
        return _Handle(self, message, peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self._receive(Incoming(buffer, None), peer)

    def recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        """Like `recv`, but the bytes are reduced into the buffer as they arrive."""
        return self._receive(Incoming(buffer, UFUNCS[operation]), peer)

    def barrier(self) -> None:
        """See Transport.barrier."""
        dissemination(self)

    def close(self) -> None:
        """See Transport.close."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}

    def advance(self) -> bool:
        """Move a chunk of the oldest message of every connection and direction; True when any moved."""
        moved = False
        for connection in self._connections.values():
            if connection.outgoing:
                moved |= connection.push()
            if connection.incoming:
                moved |= connection.pull()
        return moved

    def sleep(self, peer: int) -> None:
        """Block until a socket can move one of the pending messages; the caller waits for a message of `peer`."""
        poll = select.poll()
        for connection in self._connections.values():
            interest = (select.POLLOUT if connection.outgoing else 0) | (select.POLLIN if connection.incoming else 0)
            if interest:
                poll.register(connection.socket, interest)
        if not poll.poll(SILENT_SLEEP_MS):
            self._post.wait(peer)
            poll.poll()
            self._post.stop_waiting()

    def _receive(self, message: Incoming, peer: int) -> Handle:
        self._connections[peer].incoming.append(message)
        return _Handle(self, message, peer)


class _Handle:
    """Handle of a pending message."""

    def __init__(self, transport: Tcp, message: Outgoing | Incoming, peer: int) -> None:
        self._transport = transport
        self._message = message
        self._peer = peer

    def test(self) -> bool:
        if not self._message.done:
            self._transport.advance()
        return self._message.done

    def wait(self) -> None:
        idle = 0
        while not self._message.done:
            idle = 0 if self._transport.advance() else idle + 1
            if idle > SPINS:
                self._transport.sleep(self._peer)
                idle = 0


PLUGIN = TransportPlugin(
    name="tcp",
    summary="our own: vectored, non-blocking sockets",
    implementation=Tcp,
    axis="sockets",
    point_to_point=True,
    channels=True,
    progress="caller",
    moves_in_wait=True,
    eager_to_socket=True,
    mailbox="scaleproof.transports._tcp_mailbox:TcpMailbox",
    bears=frozenset({"kill", "replace"}),
    stated_costs="tcp.costs.yaml",
    colour="orange",
    marker="s",
)
