"""Framed messages over one non-blocking socket, without copies from and into the callers' buffers. Both directions are
independent."""

from __future__ import annotations

import socket
import struct
from collections import deque

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import Array, Reducing

HEADER = struct.Struct("<QQ")
"""Number of the message on this connection and direction, and bytes of its payload."""
CHUNK = 1 << 20
"""Bytes per system call; more would leave the other direction idle for too long."""
SCRATCH = 256 << 10
"""Bytes that are received before they are reduced, few enough to stay in the second-level cache."""


class Outgoing:
    """A message to send."""

    def __init__(self, buffer: Array) -> None:
        self.done = False
        self.payload = as_bytes(buffer).data
        self.header: memoryview | None = None
        """The part of the header that is not sent yet; None before the message starts. A full socket may accept the
        header and nothing else."""
        self.sent = 0


class Incoming:
    """A message to receive; `ufunc` reduces it into the buffer, by way of a scratch buffer."""

    def __init__(self, buffer: Array, ufunc: Reducing | None) -> None:
        self.done = False
        self.buffer, self.ufunc = buffer, ufunc
        self.payload = as_bytes(buffer).data
        self.header = bytearray(HEADER.size)
        self.header_received = 0
        self.received = 0


class Connection:
    """One peer: queues of messages in both directions, moved by `push` and `pull`."""

    def __init__(self, peer: int, connected: socket.socket) -> None:
        self.peer = peer
        self.socket = connected
        self.outgoing: deque[Outgoing] = deque()
        self.incoming: deque[Incoming] = deque()
        self._sent_messages = self._received_messages = 0
        self._scratch = np.empty(SCRATCH, np.uint8)

    def push(self) -> bool:
        """Send what the socket accepts now, at most a chunk; True when something moved."""
        message = self.outgoing[0]
        if message.header is None:
            message.header = memoryview(HEADER.pack(self._sent_messages, len(message.payload)))
        try:
            sent = self.socket.sendmsg((message.header, message.payload[message.sent : message.sent + CHUNK]))
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error) from error
        head = min(sent, len(message.header))
        message.header = message.header[head:]
        message.sent += sent - head
        if not message.header and message.sent == len(message.payload):
            message.done = True
            self._sent_messages += 1
            self.outgoing.popleft()
        return True

    def pull(self) -> bool:
        """Receive what has arrived for the oldest expected message, at most a chunk; True when something moved. Raises
        PeerLost, or TransportError when the header does not match."""
        message = self.incoming[0]
        target = self._target(message)
        try:
            if message.header_received < HEADER.size:
                received = self.socket.recvmsg_into((memoryview(message.header)[message.header_received :], target))[0]
            else:
                received = self.socket.recv_into(target)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error) from error
        if not received:
            raise self._lost(None)
        head = min(received, HEADER.size - message.header_received)
        if head:
            message.header_received += head
            self._check(message)
        self._account(message, received - head)
        return True

    def close(self) -> None:
        """Close the socket; unsent messages are lost."""
        self.socket.close()

    def _target(self, message: Incoming) -> memoryview:
        if message.ufunc is None:
            return message.payload[message.received : message.received + CHUNK]
        start = message.received % SCRATCH
        return self._scratch.data[start : min(SCRATCH, start + len(message.payload) - message.received)]

    def _check(self, message: Incoming) -> None:
        if message.header_received == HEADER.size:
            number, nbytes = HEADER.unpack(message.header)
            if number != self._received_messages or nbytes != len(message.payload):
                expected = f"message {self._received_messages} of {len(message.payload)} bytes"
                raise TransportError(
                    f"rank {self.peer} sent message {number} of {nbytes} bytes where {expected} was expected"
                )
            self._received_messages += 1

    def _account(self, message: Incoming, received: int) -> None:
        message.received += received
        finished = message.received == len(message.payload)
        if message.ufunc is not None and received and (finished or message.received % SCRATCH == 0):
            self._reduce(message)
        if finished and message.header_received == HEADER.size:
            message.done = True
            self.incoming.popleft()

    def _reduce(self, message: Incoming) -> None:
        filled = (message.received - 1) % SCRATCH + 1
        itemsize = message.buffer.itemsize
        target = message.buffer.reshape(-1)[(message.received - filled) // itemsize : message.received // itemsize]
        assert message.ufunc is not None
        message.ufunc(target, self._scratch[:filled].view(target.dtype), out=target)

    def _lost(self, error: OSError | None) -> PeerLost:
        reason = "closed the connection" if error is None else f"is gone: {error.strerror}"
        return PeerLost(self.peer, f"rank {self.peer} {reason}")
