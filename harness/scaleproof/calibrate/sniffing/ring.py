"""Connections from each node to the next, from the last node to the first: for barriers, and to measure the links."""

from __future__ import annotations

import select
import socket
import struct
from contextlib import suppress
from typing import Final

from scaleproof.calibrate.loopback_bandwidth import receive, send
from scaleproof.core.context import RankContext
from scaleproof.core.handshake import Refused, answer, prove

CONNECT_S = 30.0
CHUNK = 1 << 20
STREAM_S, TRIPS_S = 0.03, 0.01
"""Approximate time of one stream, and of the round trips of one repetition."""
FIRST, FEWEST, MOST = 64 << 10, 5, 200
"""Bytes of the first stream, from which the length of the others follows; fewest and most round trips of a
repetition."""
_HEADER = struct.Struct("<QQ")
"""Header for the receiving node: bytes of a stream, and number of streams that follow; 0: the turn is over."""


class Ring:
    """The ring of a launch's ranks. A single rank has no connections."""

    def __init__(self, context: RankContext) -> None:
        self.context, self.nodes = context, context.world_size
        self.previous: Final = (context.rank - 1) % self.nodes
        self.nbytes, self.trips = 0, FEWEST

    def __enter__(self) -> Ring:
        if self.nodes > 1:
            context = self.context
            family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
            with socket.create_server((context.address, 0), family=family) as listener:
                addresses = context.rendezvous.exchange(
                    "sniff.ring", context.rank, self.nodes, [context.address, listener.getsockname()[1]]
                )
                self.to_next = socket.create_connection(
                    tuple(addresses[(context.rank + 1) % self.nodes]), CONNECT_S, (context.address, 0)
                )
                self.from_previous = self._authenticate(listener)
            for end in (self.to_next, self.from_previous):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.setblocking(False)
        return self

    def __exit__(self, *_: object) -> None:
        if self.nodes > 1:
            self.to_next.close()
            self.from_previous.close()

    def _authenticate(self, listener: socket.socket) -> socket.socket:
        """Prove this rank's identity to the next node, and check that of the previous one. Rank 0 checks first:
        otherwise all ranks would wait for each other."""
        context = self.context
        connection = self._accept_previous(listener) if context.rank == 0 else None
        prove(self.to_next, context.token, context.launch_id, context.rank, CONNECT_S)
        return connection or self._accept_previous(listener)

    def _accept_previous(self, listener: socket.socket) -> socket.socket:
        listener.settimeout(CONNECT_S)
        while True:
            connection = listener.accept()[0]
            with suppress(OSError, Refused):  # other connections are dropped
                if answer(connection, self.context.token, self.context.launch_id) == self.previous:
                    return connection
            connection.close()

    def meet(self) -> None:
        """A barrier whose waiting takes no processor time: a byte goes round the ring twice."""
        for _ in range(2 if self.nodes > 1 else 0):
            if self.context.rank == 0:
                self.to_next.send(b"+")
                self._receive()
            else:
                self._receive()
                self.to_next.send(b"+")

    def _receive(self, most: int = 1) -> bytes:
        select.select([self.from_previous], [], [])
        if not (received := self.from_previous.recv(most)):
            raise ConnectionError(f"rank {self.previous} has ended")
        return received

    def stream(self) -> float:
        """Bytes per second of one stream to the next node. The first call finds the length that takes STREAM_S."""
        if not self.nbytes:
            self.nbytes, seconds = FIRST, 0.0
            while (seconds := self._send(self.nbytes, 1)) < STREAM_S / 4:
                self.nbytes *= 2
            self.nbytes = max(int(self.nbytes * STREAM_S / seconds), FIRST)
        return self.nbytes / self._send(self.nbytes, 1)

    def trip(self) -> float:
        """Time in s of a round trip of a byte, the mean of several."""
        seconds = self._send(1, self.trips) / self.trips
        self.trips = min(max(int(TRIPS_S / seconds), FEWEST), MOST)
        return seconds

    def _send(self, nbytes: int, times: int) -> float:
        self.to_next.sendall(_HEADER.pack(nbytes, times))
        payload = memoryview(bytes(CHUNK))
        return sum(send(self.to_next, payload, nbytes) for _ in range(times))

    def end_turn(self) -> None:
        """End this node's turn: the next node stops answering."""
        self.to_next.sendall(_HEADER.pack(0, 0))

    def answer(self) -> None:
        """Receive and acknowledge all streams of the previous node's turn."""
        buffer = memoryview(bytearray(CHUNK))
        nbytes, times = self._receive_header()
        while times:
            for _ in range(times):
                receive(self.from_previous, buffer, nbytes)
            nbytes, times = self._receive_header()

    def _receive_header(self) -> tuple[int, int]:
        received = b""
        while len(received) < _HEADER.size:
            received += self._receive(_HEADER.size - len(received))
        nbytes, times = _HEADER.unpack(received)
        return nbytes, times
