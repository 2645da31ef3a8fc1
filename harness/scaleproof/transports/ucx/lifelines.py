"""One idle connection to every peer. Its end shows that the peer is gone; a last byte before the end shows that the
peer closed its transport in order."""

from __future__ import annotations

import select
import socket

LEFT = b"\1"


class Lifelines:
    """Watches connections whose peers have proved that they know the launch's token."""

    def __init__(self, connections: dict[int, socket.socket]) -> None:
        self._connections = connections
        self._ranks = {connection.fileno(): peer for peer, connection in connections.items()}
        self._poll = select.poll()
        for descriptor in self._ranks:
            self._poll.register(descriptor, select.POLLIN)

    @property
    def peers(self) -> list[int]:
        """All other ranks."""
        return list(self._connections)

    def gone(self, peer: int) -> bool:
        """Whether a peer has ended or has closed its transport."""
        poll = select.poll()
        poll.register(self._connections[peer], select.POLLIN)
        return bool(poll.poll(0))

    def died(self) -> int | None:
        """A peer that ended without the last byte; None when there is none. Peers that closed in order are not polled
        again."""
        for descriptor, _ in self._poll.poll(0):
            peer = self._ranks[descriptor]
            if not self._closed_in_order(self._connections[peer]):
                return peer
            self._poll.unregister(descriptor)
        return None

    def close(self) -> None:
        """Send the last byte to every peer and close."""
        for connection in self._connections.values():
            try:
                connection.send(LEFT)
            except OSError:  # the peer has closed before
                connection.close()
            connection.close()

    def _closed_in_order(self, connection: socket.socket) -> bool:
        try:
            return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == LEFT
        except OSError:  # reset
            return False
